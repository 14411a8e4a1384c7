// Built once, kept by name and version. A folder appears in the cache only when it is complete.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ClusterFailure } from "./failure.ts";
import { requireGo } from "./host.ts";
import { withLock } from "./lock.ts";
import { cacheDir, refuseHidden } from "./places.ts";
import { type Recipe, recipes } from "./recipes.ts";

/** What a cluster cannot boot without. The rest is built by `build`, or by the first command that needs it. */
export const bootParts: readonly string[] = ["kubernetes", "etcd", "containerd", "coredns", "pause"];

export function builtFolder(name: string): string {
  return folderOf(recipeNamed(name));
}

export function builtFile(name: string, file: string): string {
  return join(builtFolder(name), file);
}

export async function build(names?: readonly string[]): Promise<void> {
  refuseHidden("the cache", cacheDir());
  const chosen = names?.map(recipeNamed) ?? recipes;
  if (chosen.every((recipe) => existsSync(folderOf(recipe)))) {
    return;
  }
  requireGo();
  await withLock("build", "another run is building the cluster's programs; waiting for it", async () => {
    removeUnfinished();
    const absent = chosen.filter((recipe) => !existsSync(folderOf(recipe)));
    for (const [index, recipe] of absent.entries()) {
      console.log(`building ${recipe.name} ${recipe.version} (${index + 1} of ${absent.length})`);
      await buildOne(recipe);
    }
  });
}

/** What a killed build left; nobody else builds while the lock is held. */
function removeUnfinished(): void {
  for (const name of readdirSync(cacheDir()).filter((each) => each.startsWith("building-"))) {
    rmSync(join(cacheDir(), name), { recursive: true, force: true });
  }
}

async function buildOne(recipe: Recipe): Promise<void> {
  const began = Date.now();
  mkdirSync(join(cacheDir(), "bin"), { recursive: true });
  const work = mkdtempSync(join(cacheDir(), "building-"));
  try {
    const shop = { scratch: join(work, "scratch"), out: join(work, "out"), title: recipe.name };
    mkdirSync(shop.scratch);
    mkdirSync(shop.out);
    await recipe.build(shop);
    renameSync(shop.out, folderOf(recipe));
    console.log(`  built in ${Math.round((Date.now() - began) / 1000)} s`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function folderOf(recipe: Recipe): string {
  return join(cacheDir(), "bin", `${recipe.name}-${recipe.version}`);
}

function recipeNamed(name: string): Recipe {
  const found = recipes.find((recipe) => recipe.name === name);
  if (found === undefined) {
    const known = recipes.map((recipe) => recipe.name).join(", ");
    throw new ClusterFailure(`there is no part "${name}" to build; there are ${known}`);
  }
  return found;
}
