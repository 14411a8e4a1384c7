/**
 * Asks the controller for the plan of a Gateway with a token that may be another's, as a pod would,
 * and prints the status of the answer.
 *
 *   node test/e2e/support/unauthorised-client.ts CONTROLLER_ADDRESS SERVER_NAME AUTHORITY_FILE \
 *     NAMESPACE/GATEWAY POD TOKEN
 */
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { PLAN_PATH } from "../../../src/dataplanes/remote/protocol/protocol.ts";

const [address = "", servername = "", authority = "", gateway = "", pod = "", token = ""] =
  process.argv.slice(2);
const session = connect(`https://${address}`, { ca: readFileSync(authority, "utf8"), servername });
const stream = session.request({ ":method": "POST", ":path": PLAN_PATH, authorization: `Bearer ${token}` });
stream.write(`${JSON.stringify({ type: "hello", gateway, pod })}\n`);
const status = await new Promise<unknown>((resolve, reject) => {
  session.once("error", reject);
  stream.once("error", reject);
  stream.once("response", (headers) => resolve(headers[":status"]));
});
console.log(status);
process.exit(0);
