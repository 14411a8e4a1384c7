/** Messages that are nearly HTTP/1: parts that are fine and parts that are not, mixed by chance. */

import * as fc from "fast-check";

/** The fine ones come often enough that whole messages are fine now and then. */
function mostly(fine: readonly string[], odd: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...fine) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
}

const anyByte = fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code));
const lineEnd = mostly(["\r\n"], ["\n", "\r", "\r\r\n", "\n\r\n", "", " \r\n", "\r\n "]);
const space = mostly([" "], ["  ", "\t", "", "\v", "\f"]);
const name = mostly(
  ["A", "X-Id", "Accept", "Cookie", "Connection", "Expect", "Upgrade", "TE"],
  ["", "A B", "A ", " A", "\xe4", "A\0", "(", "A:B", "Content-Length", "Transfer-Encoding", "Host"],
);
const value = mostly(
  ["", "b", "b c", "a, b", "close", "keep-alive", "\xe4\xf6", 'a"b"', "trailers", "a:b", "x".repeat(300)],
  ["\0", "a\rb", "a\nb", "\x7f", "\x01", "chunked", "5", "a\tb", "\t", "a\r\n b"],
);
const colon = mostly([": "], [":", " :", ":  ", ":\t", " : ", "", ": \t "]);
const field = fc.tuple(name, colon, value, lineEnd).map((parts) => parts.join(""));

const digits = mostly(["5", "0", "a", "10"], ["+5", "-1", "0x5", "5 ", "5,5", "", "5.0", "00005", "g"]);
const body = fc.oneof(fc.constantFrom("hello", "", "0123456789"), fc.string({ maxLength: 20 }));
const size = mostly(
  ["0", "5", "a", "A", "05"],
  ["", "g", "0x5", "-5", "5 ", " 5", "fffffffffffffffff", "1_"],
);
const extension = mostly(["", ";a", ";a=b", ';a="b c"'], [";", "; a", ";a=", ';a="', ";a\tb", ";\0"]);
const chunk = fc
  .tuple(size, extension, lineEnd, fc.constantFrom("hello", "0123456789", ""), lineEnd)
  .map((parts) => parts.join(""));
const exactChunk = fc
  .tuple(fc.string({ minLength: 1, maxLength: 12 }), extension, lineEnd, lineEnd)
  .map(([data, ext, first, second]) => `${data.length.toString(16)}${ext}${first}${data}${second}`);
const chunks = fc
  .tuple(
    fc.array(fc.oneof({ weight: 8, arbitrary: exactChunk }, { weight: 1, arbitrary: chunk }), {
      maxLength: 3,
    }),
    fc.oneof(
      { weight: 6, arbitrary: fc.constant("0\r\n") },
      { weight: 1, arbitrary: fc.constantFrom("", "0", "0\n") },
    ),
    fc.array(field, { maxLength: 1 }),
    lineEnd,
  )
  .map(([all, last, trailers, end]) => `${all.join("")}${last}${trailers.join("")}${end}`);

/** Framing fields and a body that goes with them, mostly. */
const content = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ fields: "", body: "" }) },
  {
    weight: 4,
    arbitrary: body.map((text) => ({ fields: `Content-Length: ${text.length}\r\n`, body: text })),
  },
  {
    weight: 4,
    arbitrary: chunks.map((text) => ({ fields: "Transfer-Encoding: chunked\r\n", body: text })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(digits, body)
      .map(([length, text]) => ({ fields: `Content-Length: ${length}\r\n`, body: text })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom("gzip, chunked", "chunked, chunked", "identity", "Chunked", "chunked ", "x"),
        chunks,
      )
      .map(([coding, text]) => ({ fields: `Transfer-Encoding: ${coding}\r\n`, body: text })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(digits, chunks).map(([length, text]) => ({
      fields: `Content-Length: ${length}\r\nTransfer-Encoding: chunked\r\n`,
      body: text,
    })),
  },
);

const method = mostly(
  ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"],
  ["get", "FETCH", "", "G T", "GET\0"],
);
const target = mostly(
  ["/", "/a?b=c", "/a/../b", "http://a.example/"],
  ["", "/a b", "/\xe4", "/\x01", "*", "a"],
);
const version = mostly(
  ["HTTP/1.1"],
  ["HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", "HTTP/01.1", ""],
);
const before = mostly([""], ["\r\n", "\n", " ", "\r\n\r\n"]);
const host = mostly(
  ["Host: a.example\r\n"],
  ["", "Host: a\r\nHost: b\r\n", "Host:\r\n", "host:a.example:80\r\n"],
);

const request = fc
  .tuple(
    fc.tuple(before, method, space, target, space, version, lineEnd).map((parts) => parts.join("")),
    host,
    fc.array(field, { maxLength: 3 }),
    content,
    lineEnd,
  )
  .map(([line, own, fields, { fields: framing, body: text }, end]) =>
    [line, own, ...fields, framing, end, text].join(""),
  );

const status = mostly(["200", "404", "204", "304", "100", "103"], ["2", "2000", "2xx", "", "099", "101"]);
const reason = mostly([" OK", " ", ""], [" \0", " a\rb", "x", "  x"]);
const answer = fc
  .tuple(
    fc.tuple(version, space, status, reason, lineEnd).map((parts) => parts.join("")),
    fc.array(field, { maxLength: 3 }),
    content,
    lineEnd,
  )
  .map(([line, fields, { fields: framing, body: text }, end]) =>
    [line, ...fields, framing, end, text].join(""),
  );

function broken(message: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 8, arbitrary: message },
    {
      weight: 2,
      arbitrary: fc
        .tuple(message, fc.nat(), anyByte)
        .map(
          ([text, at, byte]) =>
            `${text.slice(0, at % text.length)}${byte}${text.slice((at % text.length) + 1)}`,
        ),
    },
  );
}

/** One or several requests on a connection, Latin-1. */
export const generatedRequests: fc.Arbitrary<string> = fc
  .array(broken(request), { minLength: 1, maxLength: 3 })
  .map((all) => all.join(""));

export const generatedAnswer: fc.Arbitrary<string> = broken(answer);
