/**
 * The noisy tenant, in a process of its own that takes what others leave of the processor: it must
 * not be the measured one's rival there.
 */

import { setPriority } from "node:os";
import { Flood } from "../../test/dataplanes/tenants/flood.ts";
import { LIMITS, NOISY } from "./world.ts";

const [port = "0"] = process.argv.slice(2);
setPriority(19);
const flood = new Flood({
  port: Number(port),
  host: NOISY,
  slow: LIMITS.requests * 2,
  bodies: 16,
  dead: 32,
});
process.send?.("started");
process.once("message", () => {
  process.send?.({ answers: [...flood.answers], bytesSent: flood.bytesSent }, () => {
    void flood.stop().then(() => process.exit());
  });
});
process.once("disconnect", () => process.exit());
