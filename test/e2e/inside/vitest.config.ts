import { fileURLToPath } from "node:url";
import { defineConfig, type ViteUserConfig } from "vitest/config";

/**
 * Tests that speak to the API server themselves, and so run inside a cluster's network:
 * npm run cluster -- in vitest run --config test/e2e/inside/vitest.config.ts
 */
const config: ViteUserConfig = defineConfig({
  test: {
    root: fileURLToPath(new URL("../../..", import.meta.url)),
    include: ["test/e2e/inside/*.inside.ts"],
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // One cluster for all, and some of them stop its API server.
    fileParallelism: false,
  },
});
export default config;
