import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import { describeDataPlane } from "./contract.ts";

describeDataPlane("embedded, in the process", (options) =>
  createEmbeddedDataPlane({ ...options, workers: 0 }),
);
describeDataPlane("embedded, in a worker", (options) => createEmbeddedDataPlane({ ...options, workers: 1 }));
