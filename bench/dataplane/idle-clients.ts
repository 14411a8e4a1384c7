/** Opens connections, asks once on each, and keeps them idle until it is ended. */

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { hostOf, prefixOf } from "./world.ts";

const [port = "0", count = "1", scheme = "http"] = process.argv.slice(2);
const AT_ONCE = 50;

for (let opened = 0; opened < Number(count); opened += AT_ONCE) {
  await Promise.all(Array.from({ length: AT_ONCE }, (_, at) => open(hostOf((opened + at) % 100))));
}
process.send?.({ ready: true });
process.once("disconnect", () => process.exit());

function open(host: string): Promise<void> {
  const place = { host: "127.0.0.1", port: Number(port) };
  const socket: Socket =
    scheme === "http"
      ? connectTcp(place)
      : connectTls({ ...place, servername: host, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  socket.write(`GET ${prefixOf(0)}/small HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return new Promise((resolve, reject) => {
    socket.once("data", () => resolve()).once("error", reject);
  });
}
