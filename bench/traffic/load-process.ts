/** Asks over kept-alive connections, and answers as the backend: a process of its own. */
import { connect, createServer, type Socket } from "node:net";

const CONNECTIONS = 32;
const PIPELINED = 4;
const ANSWER = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
const END = Buffer.from("\r\n\r\n");

/** `requests` are asked of `port`, spread over the tenants. */
export interface Order {
  readonly port: number;
  readonly requests: number;
  readonly tenants: number;
}

createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", (chunk: Buffer) => {
    for (let at = chunk.indexOf(END); at >= 0; at = chunk.indexOf(END, at + 4)) socket.write(ANSWER);
  });
}).listen(Number(process.argv[2]), "127.0.0.1", () => process.send?.({ ready: true }));

process.on("message", (order: Order) => {
  void Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => ask(order, index))).then(() =>
    process.send?.({ done: true }),
  );
});
process.once("disconnect", () => process.exit());

function ask({ port, requests, tenants }: Order, index: number): Promise<void> {
  const wanted = Math.ceil(requests / CONNECTIONS);
  let sent = 0;
  let answered = 0;
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, "127.0.0.1");
    const send = (): void => {
      const tenant = (index * 7919 + sent++ * 31) % tenants;
      socket.write(`GET /app HTTP/1.1\r\nhost: t${tenant}.example.com\r\n\r\n`);
    };
    socket.on("error", reject);
    socket.on("connect", () => {
      for (let first = 0; first < PIPELINED; first++) send();
    });
    socket.on("data", (chunk: Buffer) => {
      for (let at = chunk.indexOf("HTTP/1.1"); at >= 0; at = chunk.indexOf("HTTP/1.1", at + 8)) {
        answered++;
        if (sent < wanted) send();
      }
      if (answered < wanted) return;
      socket.destroy();
      resolve();
    });
  });
}
