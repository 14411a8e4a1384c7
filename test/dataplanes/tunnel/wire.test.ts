/**
 * The doubles' own protocol, checked against bytes written by hand: both ends were written together
 * and would else only agree with each other.
 */
import { describe, expect, test } from "vitest";
import { encode, MessageReader, Reader, struct, text, words } from "./support/capnp.ts";
import { configurationProblem, matchingRule } from "./support/ingress-rules.ts";
import {
  bootstrapAnswer,
  bootstrapCall,
  readToConnector,
  readToEdge,
  refusedAnswer,
  registerCall,
  registeredAnswer,
  unregisterCall,
} from "./support/registration.ts";

const hex = (...lines: readonly string[]): Buffer => Buffer.from(lines.join("").replaceAll(" ", ""), "hex");

describe("bytes", () => {
  test("the bootstrap is read as the connector sends it", () => {
    expect(bootstrapCall(5).toString("hex")).toBe(
      hex(
        "00000000 05000000", // one segment of five words
        "00000000 01000100", // root: a struct of one data word and one pointer
        "0800 000000000000", // message kind 8
        "00000000 01000100", // its content
        "05000000 00000000", // question 5
        "00000000 00000000",
      ).toString("hex"),
    );
  });

  test("the answer to it is a capability, and the table that it points into", () => {
    expect(bootstrapAnswer(5).toString("hex")).toBe(
      hex(
        "00000000 0b000000",
        "00000000 01000100", // message
        "0300 000000000000", // kind 3
        "00000000 02000100", // return: two data words, one pointer
        "05000000 00000000", // answer 5, results
        "00000000 00000000",
        "00000000 00000200", // payload: two pointers
        "03000000 00000000", // content: capability 0
        "01000000 17000000", // table: a list of structs, two words
        "04000000 01000100", // one element of one data word and one pointer
        "0100 0000 00000000", // hosted by the sender, number 0
        "00000000 00000000",
      ).toString("hex"),
    );
  });
});

describe("messages", () => {
  const registration = {
    account: "0123456789abcdef0123456789abcdef",
    secret: Buffer.from("secret of thirty-two characters!"),
    tunnel: "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415",
    index: 3,
    connector: "00000000-1111-2222-3333-444444444444",
  };
  const one = (message: Buffer): Reader => new MessageReader().push(message)[0] as Reader;

  test("what one end says, the other understands", () => {
    expect(readToEdge(one(bootstrapCall(7)))).toEqual({ type: "bootstrap", question: 7 });
    expect(readToEdge(one(registerCall(8, 7, registration)))).toEqual({
      type: "register",
      question: 8,
      registration,
    });
    expect(readToEdge(one(unregisterCall(9, 7)))).toEqual({ type: "unregister", question: 9 });
    expect(readToConnector(one(registeredAnswer(8, registration.connector, "tst01")))).toEqual({
      question: 8,
      location: "tst01",
      remotelyManaged: true,
    });
    expect(readToConnector(one(refusedAnswer(8, "no")))).toEqual({ question: 8, refused: "no" });
  });

  test("arrive in any pieces", () => {
    const stream = Buffer.concat([bootstrapCall(1), registerCall(2, 1, registration)]);
    const reader = new MessageReader();
    const found = Array.from(stream, (byte) => reader.push(Buffer.from([byte]))).flat();
    expect(found.map((message) => readToEdge(message).type)).toEqual(["bootstrap", "register"]);
  });

  test("are read across segments", () => {
    // The root leads to the second segment by a far pointer (tag 2): first word of segment 1, where
    // a struct pointer stands.
    const first = hex("02000000 01000000");
    const second = hex("00000000 01000100", "2a000000 00000000", "01000000 1a000000", "6869 00 0000000000");
    const root = Reader.root([first, second]);
    expect([root.u32(0), root.text(0)]).toEqual([42, "hi"]);
  });

  test("of absurd size are refused", () => {
    expect(() => new MessageReader().push(hex("ffffff00 00000000"))).toThrow("segments");
    expect(() => new MessageReader().push(hex("00000000 ffffff7f"))).toThrow("long");
  });

  test("fields beyond a struct's end have their default", () => {
    const message = new MessageReader().push(encode(struct(words(1), text("x"))))[0];
    expect([message?.u32(8), message?.u64(16), message?.text(1), message?.struct(3)]).toEqual([
      0,
      0n,
      "",
      undefined,
    ]);
  });
});

describe("cloudflared's reading of a document", () => {
  const all = { service: "http_status:404" };
  test.each([
    ["a path in a service", [{ hostname: "a", service: "http://x:1/y" }, all]],
    ["no last rule for everything", [{ hostname: "a", service: "http://x:1" }]],
    ["a rule for everything before others", [all, all]],
    ["a port in a hostname", [{ hostname: "a:80", service: "http://x:1" }, all]],
    ["a wildcard within a name", [{ hostname: "a.*.com", service: "http://x:1" }, all]],
    ["an expression that is none", [{ hostname: "a", path: "(", service: "http://x:1" }, all]],
  ])("%s is refused", (_name, ingress) => {
    expect(configurationProblem({ ingress })).toBeTypeOf("string");
  });

  test("the first rule that matches counts; paths match anywhere, wildcards many labels", () => {
    const ingress = [
      { hostname: "*.x.com", path: "foo*", service: "http://1:1" },
      { hostname: "app.x.com", service: "http://2:2" },
      all,
    ];
    expect(configurationProblem({ ingress })).toBeUndefined();
    expect(matchingRule(ingress, "app.x.com", "/zzz/fo")?.service).toBe("http://1:1");
    expect(matchingRule(ingress, "a.b.x.com", "/foo")?.service).toBe("http://1:1");
    expect(matchingRule(ingress, "x.com", "/foo")?.service).toBe(all.service);
    expect(matchingRule(ingress, "app.x.com", "/bar")?.service).toBe("http://2:2");
  });
});
