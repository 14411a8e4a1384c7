/**
 * Every condition of GEP-1713 and of cloudflare-tunnel-gateway-controller's page "ListenerSet", as
 * the API server holds it, written by the controller that users install. Those of GEP-1713
 * (experimental) are in xlistenerset.e2e.ts. A title names the clause that it is about. `settled`
 * of the cluster checks on the way that every condition has the object's newest generation.
 */
import { afterAll, afterEach, beforeAll } from "vitest";
import { conflicts } from "./conditions/conflicts.ts";
import { classesAndHandshake } from "./conditions/owners.ts";
import { references } from "./conditions/references.ts";
import { routes } from "./conditions/routes.ts";
import { Scene } from "./conditions/scene.ts";

let scene: Scene;
const inScene = (): Scene => scene;

beforeAll(async () => {
  scene = await Scene.up("e2e-conditions");
});

afterAll(async () => {
  await scene?.cluster.down();
});

afterEach(() => scene.clear());

classesAndHandshake(inScene);
conflicts(inScene);
references(inScene);
routes(inScene);
