import { fileURLToPath } from "node:url";
import { defineConfig, type ViteUserConfig } from "vitest/config";

/**
 * Tests that need Helm and clusters of their own, which they bring up and take down: `npx vitest
 * run -c test/e2e/vitest.config.ts`.
 */
const config: ViteUserConfig = defineConfig({
  test: {
    root: fileURLToPath(new URL("../..", import.meta.url)),
    include: ["test/e2e/**/*.e2e.ts"],
    // A cluster is most of what a small machine can carry.
    fileParallelism: false,
    // What waits ends earlier and says what it waited for, also where the machine is busy.
    testTimeout: 600_000,
    hookTimeout: 1_800_000,
  },
});
export default config;
