import { describeDataPlane } from "./contract.ts";
import { createEnvoy } from "./envoy-plane.ts";

describeDataPlane("Envoy", (options) => createEnvoy(options));
