/** Programs from registries, kept by name and version in the cache that the test bed uses. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildRecipes, folderOf } from "../test/cluster/build.ts";
import { requireGo } from "../test/cluster/host.ts";
import { fromPackages, type PackagePrograms, type Recipe } from "../test/cluster/recipes.ts";

/** Programs of one Go module; gives a function that says where a program is. */
export async function installGo(programs: PackagePrograms): Promise<(program: string) => string> {
  const recipe = fromPackages(programs);
  if (!existsSync(folderOf(recipe))) requireGo();
  return installRecipe(recipe);
}

async function installRecipe(recipe: Recipe): Promise<(program: string) => string> {
  await buildRecipes([recipe], "suite-build");
  return (program) => join(folderOf(recipe), program);
}
