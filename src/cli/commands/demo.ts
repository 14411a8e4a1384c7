import { type Command, defineCommand } from "../foundation/command.ts";

export const demoCommand: Command = defineCommand({
  name: "demo",
  summary: "serve the example of two teams on one Gateway, with backends to answer",
  about: [
    "Starts a small backend for every EndpointSlice of the example, serves it on 127.0.0.1 (ports 8080 and 8443) and prints what to try.",
    "The third team asks for a hostname that is taken: its refusal is shown with the reason.",
  ].join("\n"),
  arguments: [],
  flags: {
    "port-offset": {
      type: "number",
      value: "N",
      default: 0,
      min: 0,
      max: 57_092,
      help: "open every port N higher, where 8080 or 8443 is in use",
    },
  },
  examples: [{ line: "mergeway demo", says: "the same as npm start in a checkout" }],
  exits: { 0: "stopped when it was told to", 2: "could not run" },
  run: async ({ flags }, host) => {
    const { runDemo } = await import("../demo/run-demo.ts");
    return await runDemo(flags["port-offset"], host);
  },
});
