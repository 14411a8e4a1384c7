import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HpackDecoder } from "../../../../src/dataplanes/embedded/http2/hpack/decoder.ts";
import { HeaderBlockWriter, HpackEncoder } from "../../../../src/dataplanes/embedded/http2/hpack/encoder.ts";
import { type Field, isFieldValue } from "../../../../src/dataplanes/embedded/http2/hpack/field.ts";
import {
  decodeHuffman,
  encodeHuffman,
  huffmanLength,
} from "../../../../src/dataplanes/embedded/http2/hpack/huffman.ts";

type Pair = readonly [name: string, value: string];

function decode(decoder: HpackDecoder, hex: string | Buffer): readonly Pair[] | undefined {
  const bytes = typeof hex === "string" ? Buffer.from(hex.replaceAll(" ", ""), "hex") : hex;
  const fields: Pair[] = [];
  const sink = { field: ({ name, value }: Field): unknown => fields.push([name, value]) };
  return decoder.decode(bytes, 0, bytes.length, sink) ? fields : undefined;
}

const request1: readonly Pair[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "www.example.com"],
];
const request3: readonly Pair[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/index.html"],
  [":authority", "www.example.com"],
  ["custom-key", "custom-value"],
];
const answer1: readonly Pair[] = [
  [":status", "302"],
  ["cache-control", "private"],
  ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
  ["location", "https://www.example.com"],
];
const answer2: readonly Pair[] = [[":status", "307"], ...answer1.slice(1)];
const answer3: readonly Pair[] = [
  [":status", "200"],
  ["cache-control", "private"],
  ["date", "Mon, 21 Oct 2013 20:13:22 GMT"],
  ["location", "https://www.example.com"],
  ["content-encoding", "gzip"],
  ["set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
];

describe("HPACK: the examples of RFC 7541, appendix C", () => {
  test.each<[string, string, readonly Pair[]]>([
    [
      "C.2.1",
      "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
      [["custom-key", "custom-header"]],
    ],
    ["C.2.2", "040c 2f73 616d 706c 652f 7061 7468", [[":path", "/sample/path"]]],
    ["C.2.3", "1008 7061 7373 776f 7264 0673 6563 7265 74", [["password", "secret"]]],
    ["C.2.4", "82", [[":method", "GET"]]],
  ])("%s", (_title, hex, fields) => {
    expect(decode(new HpackDecoder(4_096), hex)).toEqual(fields);
  });

  type Step = readonly [hex: string, fields: readonly Pair[], tableSize: number];
  const withCache: readonly Pair[] = [...request1, ["cache-control", "no-cache"]];
  test.each<[string, number, readonly Step[]]>([
    [
      "C.3",
      4_096,
      [
        ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", request1, 57],
        ["8286 84be 5808 6e6f 2d63 6163 6865", withCache, 110],
        ["8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", request3, 164],
      ],
    ],
    [
      "C.4",
      4_096,
      [
        ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", request1, 57],
        ["8286 84be 5886 a8eb 1064 9cbf", withCache, 110],
        ["8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", request3, 164],
      ],
    ],
    [
      "C.5",
      256,
      [
        [
          "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
          answer1,
          222,
        ],
        ["4803 3330 37c1 c0bf", answer2, 222],
        [
          "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
          answer3,
          215,
        ],
      ],
    ],
    [
      "C.6",
      256,
      [
        [
          "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
          answer1,
          222,
        ],
        ["4883 640e ffc1 c0bf", answer2, 222],
        [
          "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
          answer3,
          215,
        ],
      ],
    ],
  ])("%s", (_title, size, steps) => {
    const decoder = new HpackDecoder(size);
    for (const [hex, fields, tableSize] of steps) {
      expect(decode(decoder, hex)).toEqual(fields);
      expect(decoder.tableSize).toBe(tableSize);
    }
  });
});

describe("HPACK: blocks that are none", () => {
  test.each<[string, string]>([
    ["index 0", "80"],
    ["an index beyond the table", "be"],
    ["a name beyond the table", "7e 01 61"],
    ["an integer without end", "ff ff ff ff ff ff 01"],
    ["an integer that is cut off", "ff ff"],
    ["a string longer than the block", "00 05 61"],
    ["a literal without a value", "00 01 61"],
    ["a field without a name", "40"],
    ["a table larger than allowed", "3f e2 1f"],
    ["a change of the table behind a field", "82 20"],
    ["three changes of the table", "20 20 20 82"],
    ["Huffman padding of zeros", "00 01 61 81 00"],
    ["Huffman padding of a whole byte", "00 01 61 82 1f ff"],
    ["the end-of-string code", "00 01 61 84 ff ff ff ff"],
  ])("%s", (_title, hex) => {
    expect(decode(new HpackDecoder(4_096), hex)).toBeUndefined();
  });

  test("random bytes neither throw nor fill the table beyond its size", () => {
    const decoder = new HpackDecoder(512);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        decode(decoder, Buffer.from(bytes));
        expect(decoder.tableSize).toBeLessThanOrEqual(512);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("Huffman", () => {
  const latin1 = fc
    .array(fc.integer({ min: 0, max: 255 }), { maxLength: 300 })
    .map((codes) => String.fromCharCode(...codes));

  test("every text comes back", () => {
    fc.assert(
      fc.property(latin1, (text) => {
        const out = Buffer.alloc(2_000);
        const end = encodeHuffman(text, out, 7);
        expect(end - 7).toBe(huffmanLength(text));
        expect(decodeHuffman(out, 7, end)).toBe(text);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("HPACK: what is written can be read", () => {
  const names = fc.constantFrom(
    "accept",
    "content-type",
    "x-a",
    "x-b",
    "cookie",
    "x-request-id",
    "server",
    "vary",
  );
  const values = fc.oneof(
    fc.constantFrom("a", "text/plain", "gzip, deflate", "", "x".repeat(900)),
    fc
      .array(
        fc.integer({ min: 0x21, max: 0xfe }).filter((code) => code !== 0x7f),
        { maxLength: 60 },
      )
      .map((codes) => String.fromCharCode(...codes)),
  );
  const block = fc.array(fc.tuple(names, values), { maxLength: 20 });
  const resize = fc.option(fc.constantFrom(0, 64, 200, 4_096, 100_000), { freq: 4 });

  test("blocks are read one after the other, with tables that change their size", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(resize, block), { minLength: 1, maxLength: 20 }), (blocks) => {
        const encoder = new HpackEncoder();
        const decoder = new HpackDecoder(4_096);
        const writer = new HeaderBlockWriter();
        for (const [size, fields] of blocks) {
          if (size !== null) encoder.resize(size);
          if (size !== null && size < 100) encoder.resize(100);
          encoder.encode([":status", "200"], fields.flat(), writer);
          const read = decode(decoder, Buffer.from(writer.buffer.subarray(0, writer.length)));
          expect(read).toEqual([[":status", "200"], ...fields]);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("fields that repeat become short, secrets never do", () => {
    const encoder = new HpackEncoder();
    const writer = new HeaderBlockWriter();
    const lengthOf = (fields: readonly string[]): number => {
      for (let round = 0; round < 3; round++) encoder.encode([], fields, writer);
      return writer.length;
    };
    expect(lengthOf(["x-repeated-name", "a value of some length"])).toBe(1);
    const secret = ["set-cookie", "session=0123456789"];
    expect(lengthOf(secret)).toBeGreaterThan(18);
    expect((writer.buffer[0] as number) & 0xf0).toBe(0x10);
  });

  test("a field that cannot be sent leaves the table alone", () => {
    const encoder = new HpackEncoder();
    const decoder = new HpackDecoder(4_096);
    const writer = new HeaderBlockWriter();
    const good = ["x-good", "value-that-repeats"];
    for (let round = 0; round < 4; round++) {
      for (const bad of [
        ["x-bad", "a\r\nb"],
        ["x-bad", "\u0100"],
        ["Upper", "a"],
        ["connection", "close"],
        ["", "a"],
        [":path", "/"],
        ["a b", "c"],
      ]) {
        expect(() => encoder.encode([], [...good, ...bad], writer)).toThrow(TypeError);
      }
      encoder.encode([], good, writer);
      expect(decode(decoder, Buffer.from(writer.buffer.subarray(0, writer.length)))).toEqual([good]);
    }
  });

  test("values are visible characters with spaces between them", () => {
    for (const value of ["", "a", "a b", "a\tb", "\xe4"]) expect(isFieldValue(value)).toBe(true);
    for (const value of [" a", "a ", "\ta", "a\0", "a\x7f", "a\nb", "\x1b"])
      expect(isFieldValue(value)).toBe(false);
  });
});
