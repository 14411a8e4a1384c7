// Built once, kept by name and version. A folder appears in the cache only when it is complete.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ClusterFailure } from "../host/failure.ts";
import { withLock } from "../host/lock.ts";
import { cacheDir, refuseHidden } from "../host/places.ts";
import { requireGo } from "../host/requirements.ts";
import { type Recipe, recipes } from "./recipes.ts";

/**
 * What a cluster cannot boot without. The rest is built by `build`, or by the first command that
 * needs it.
 */
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
  if (chosen.some((recipe) => !existsSync(folderOf(recipe)))) {
    requireGo();
  }
  await buildRecipes(chosen);
}

/**
 * Builds what is not in the cache. Different users of the cache build side by side: each has a lock
 * and scratch folders of its own name.
 */
export async function buildRecipes(chosen: readonly Recipe[], user = "build"): Promise<void> {
  if (chosen.every((recipe) => existsSync(folderOf(recipe)))) {
    return;
  }
  await withLock(user, "another run is building the same programs; waiting for it", async () => {
    const scratch = `${user}ing-`;
    removeUnfinished(scratch);
    const absent = chosen.filter((recipe) => !existsSync(folderOf(recipe)));
    for (const [index, recipe] of absent.entries()) {
      console.log(`building ${recipe.name} ${recipe.version} (${index + 1} of ${absent.length})`);
      await buildOne(recipe, scratch);
    }
  });
}

/** What a killed build left; nobody else builds while the lock is held. */
function removeUnfinished(scratch: string): void {
  for (const name of readdirSync(cacheDir()).filter((each) => each.startsWith(scratch))) {
    rmSync(join(cacheDir(), name), { recursive: true, force: true });
  }
}

async function buildOne(recipe: Recipe, scratch: string): Promise<void> {
  const began = Date.now();
  mkdirSync(join(cacheDir(), "bin"), { recursive: true });
  const work = mkdtempSync(join(cacheDir(), scratch));
  try {
    const shop = { scratch: join(work, "scratch"), out: join(work, "out"), title: recipe.name };
    mkdirSync(shop.scratch);
    mkdirSync(shop.out);
    await recipe.build(shop);
    takeInto(folderOf(recipe), shop.out);
    console.log(`  built in ${Math.round((Date.now() - began) / 1000)} s`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Tests get Envoy without the lock and may have been faster: what is there already is as good. */
function takeInto(folder: string, made: string): void {
  try {
    renameSync(made, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

export function folderOf(recipe: Recipe): string {
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
