/**
 * A client that opens a TLS connection for every request, each for another tenant: full handshakes,
 * one request, goodbye.
 */

import { connect, createSecureContext } from "node:tls";
import { hostOf, prefixOf, TENANTS } from "./world.ts";

const [port = "0", connections = "1", seconds = "1"] = process.argv.slice(2);
const end = Date.now() + Number(seconds) * 1_000;
const secureContext = createSecureContext();
let tenant = 0;
let failures = 0;

await Promise.all(Array.from({ length: Number(connections) }, run));
if (failures > 0) process.stdout.write(`failures: ${failures}\n`);

async function run(): Promise<void> {
  while (Date.now() < end) {
    // A stride that meets every tenant before it meets one again.
    tenant = (tenant + 1_009) % TENANTS;
    if (!(await ask(hostOf(tenant)))) failures++;
  }
}

function ask(servername: string): Promise<boolean> {
  return new Promise((resolve) => {
    const options = {
      host: "127.0.0.1",
      port: Number(port),
      servername,
      secureContext,
      ALPNProtocols: ["http/1.1"],
    };
    let answer = "";
    const socket = connect({ ...options, rejectUnauthorized: false }, () => {
      socket.write(`GET ${prefixOf(0)}/small HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
    });
    socket.on("data", (bytes) => {
      answer += bytes.toString("latin1");
    });
    socket.on("error", () => {}).on("close", () => resolve(answer.startsWith("HTTP/1.1 200")));
  });
}
