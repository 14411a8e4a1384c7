/**
 * Malformed and ambiguous HTTP/1.1 requests. Each is either refused (the status is given, no
 * backend hears of it) or brought into one canonical form, the one that was also routed on.
 *
 * Hosts and rules of the Gateway under test: `public.example` goes to the backend `public`, except
 * `/admin`, which goes to `secret`; `secret.example` goes to `secret`.
 */

export interface Passed {
  readonly backend: "public" | "secret";
  readonly method?: string;
  readonly path: string;
  readonly host?: string;
  readonly body?: string;
}

export interface HostileRequest {
  readonly name: string;
  /** Latin-1; `case-0000` is replaced by the id of the case, which is as long. */
  readonly send: string;
  readonly refused?: readonly number[];
  readonly passed?: readonly Passed[];
}

const close = "Connection: close\r\nX-Id: case-0000\r\n";
const host = "Host: public.example\r\n";
const bad: readonly number[] = [400];

/** One well-formed request but for the given part. */
const line = (text: string): string => `${text}\r\n${host}${close}\r\n`;
const get = (path: string): string => line(`GET ${path} HTTP/1.1`);
const field = (text: string): string => `GET /field HTTP/1.1\r\n${host}${close}${text}\r\n\r\n`;
const hosted = (text: string): string => `GET /host HTTP/1.1\r\n${text}${close}\r\n`;
const post = (fields: string, body: string): string =>
  `POST /post HTTP/1.1\r\n${host}${close}${fields}\r\n\r\n${body}`;
const chunked = (body: string): string => post("Transfer-Encoding: chunked", body);

/** Behind a request whose end is in doubt: whoever reads it as a request has been fooled. */
const smuggled = "GET /admin/smuggled HTTP/1.1\r\nHost: secret.example\r\nX-Id: case-0000\r\n\r\n";

const framing: readonly HostileRequest[] = [
  {
    name: "Content-Length before Transfer-Encoding",
    send: post("Content-Length: 6\r\nTransfer-Encoding: chunked", `0\r\n\r\n${smuggled}`),
    refused: bad,
  },
  {
    name: "Transfer-Encoding before Content-Length",
    send: post("Transfer-Encoding: chunked\r\nContent-Length: 4", `5c\r\n${smuggled}`),
    refused: bad,
  },
  {
    name: "two different Content-Lengths",
    send: post("Content-Length: 5\r\nContent-Length: 6", "hello!"),
    refused: bad,
  },
  {
    name: "the same Content-Length twice",
    send: post("Content-Length: 5\r\nContent-Length: 5", "hello"),
    refused: bad,
  },
  { name: "a list of Content-Lengths", send: post("Content-Length: 5, 5", "hello"), refused: bad },
  { name: "a signed Content-Length", send: post("Content-Length: +5", "hello"), refused: bad },
  { name: "a negative Content-Length", send: post("Content-Length: -1", "hello"), refused: bad },
  { name: "a hexadecimal Content-Length", send: post("Content-Length: 0x5", "hello"), refused: bad },
  { name: "a Content-Length in two parts", send: post("Content-Length: 1 0", "helloworld"), refused: bad },
  { name: "an empty Content-Length", send: post("Content-Length: ", "hello"), refused: bad },
  { name: "a fractional Content-Length", send: post("Content-Length: 5.0", "hello"), refused: bad },
  {
    name: "a Content-Length beyond 2^64",
    send: post("Content-Length: 18446744073709551621", "hello"),
    refused: bad,
  },
  { name: "a Content-Length with a vertical tab", send: post("Content-Length: \v5", "hello"), refused: bad },
  {
    name: "a space before the colon of Content-Length",
    send: post("Content-Length : 5", "hello"),
    refused: bad,
  },
  { name: "gzip before chunked", send: post("Transfer-Encoding: gzip, chunked", "0\r\n\r\n"), refused: bad },
  {
    name: "chunked before identity",
    send: post("Transfer-Encoding: chunked, identity", "0\r\n\r\n"),
    refused: bad,
  },
  { name: "chunked twice", send: post("Transfer-Encoding: chunked, chunked", "0\r\n\r\n"), refused: bad },
  {
    name: "Transfer-Encoding twice",
    send: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
    refused: bad,
  },
  {
    name: "Transfer-Encoding twice, the second unknown",
    send: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "0\r\n\r\n"),
    refused: bad,
  },
  {
    name: "Transfer-Encoding and Content-Length in HTTP/1.0",
    send: `POST /post HTTP/1.0\r\n${host}X-Id: case-0000\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
    refused: bad,
  },
  { name: "gzip alone", send: post("Transfer-Encoding: gzip", "hello"), refused: bad },
  {
    name: "gzip, then chunked in a field of its own",
    send: post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", "0\r\n\r\n"),
    refused: bad,
  },
  { name: "a Content-Length in other digits", send: post("Content-Length: \xb2", "he"), refused: bad },
  { name: "identity", send: post("Transfer-Encoding: identity", ""), refused: bad },
  {
    name: "a coding that contains chunked",
    send: post("Transfer-Encoding: xchunked", "0\r\n\r\n"),
    refused: bad,
  },
  {
    name: "a coding with a parameter",
    send: post("Transfer-Encoding: chunked;q=1", "0\r\n\r\n"),
    refused: bad,
  },
  { name: "a quoted coding", send: post('Transfer-Encoding: "chunked"', "0\r\n\r\n"), refused: bad },
  { name: "an empty Transfer-Encoding", send: post("Transfer-Encoding: ", "0\r\n\r\n"), refused: bad },
  {
    name: "chunked behind a vertical tab",
    send: post("Transfer-Encoding: \vchunked", "0\r\n\r\n"),
    refused: bad,
  },
  { name: "chunked before a comma", send: post("Transfer-Encoding: chunked,", "0\r\n\r\n"), refused: bad },
  { name: "a space before the colon", send: post("Transfer-Encoding : chunked", "0\r\n\r\n"), refused: bad },
  {
    name: "a folded Transfer-Encoding",
    send: post("Transfer-Encoding:\r\n chunked", "0\r\n\r\n"),
    refused: bad,
  },
  {
    name: "Transfer-Encoding in HTTP/1.0",
    send: `POST /post HTTP/1.0\r\n${host}X-Id: case-0000\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    refused: bad,
  },
  {
    name: "chunked in capitals",
    send: post("Transfer-Encoding: CHUNKED", "5\r\nhello\r\n0\r\n\r\n"),
    passed: [{ backend: "public", method: "POST", path: "/post", body: "hello" }],
  },
  {
    name: "a body on GET",
    send: `GET /with-body HTTP/1.1\r\n${host}${close}Content-Length: 5\r\n\r\nhello`,
    passed: [{ backend: "public", path: "/with-body", body: "hello" }],
  },
  {
    name: "a request in the body of GET",
    send: `GET /outer HTTP/1.1\r\n${host}${close}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    passed: [{ backend: "public", path: "/outer", body: smuggled }],
  },
];

/** The head was fine, so the backend may have heard of these; it never takes them for whole. */
const chunks: readonly HostileRequest[] = [
  { name: "a chunk size that is no number", send: chunked("g\r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "a negative chunk size", send: chunked("-5\r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "a prefixed chunk size", send: chunked("0x5\r\nhello\r\n0\r\n\r\n"), refused: bad },
  {
    name: "a chunk size beyond 2^64",
    send: chunked("10000000000000005\r\nhello\r\n0\r\n\r\n"),
    refused: bad,
  },
  { name: "a space behind the chunk size", send: chunked("5 \r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "a space before the chunk size", send: chunked(" 5\r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "an empty chunk size", send: chunked("\r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "a chunk line that ends in LF", send: chunked("5\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "a chunk line that ends in CR", send: chunked("5\rhello\r\n0\r\n\r\n"), refused: bad },
  { name: "a chunk longer than it says", send: chunked("5\r\nhello!\r\n0\r\n\r\n"), refused: bad },
  { name: "a chunk that ends in LF", send: chunked("5\r\nhello\n0\r\n\r\n"), refused: bad },
  { name: "a chunk without an end of line", send: chunked(`5\r\nhello0\r\n\r\n${smuggled}`), refused: bad },
  { name: "an extension with a bare LF", send: chunked(`5;a\nhello\r\n0\r\n\r\n${smuggled}`), refused: bad },
  { name: "an extension with a bare CR", send: chunked("5;a\rb\r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "an extension with a NUL", send: chunked("5;a\0\r\nhello\r\n0\r\n\r\n"), refused: bad },
  {
    name: "an extension of 100 kB",
    send: chunked(`5;${"a".repeat(100_000)}\r\nhello\r\n0\r\n\r\n`),
    refused: [400, 413, 431],
  },
  {
    name: "extensions of 100 kB in all",
    send: chunked(`${`1;${"a".repeat(999)}\r\nx\r\n`.repeat(100)}0\r\n\r\n`),
    refused: [400, 413, 431],
  },
  { name: "an extension without a name", send: chunked("5;\r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "an extension with a space", send: chunked("5; a\r\nhello\r\n0\r\n\r\n"), refused: bad },
  { name: "an open quote in an extension", send: chunked('5;a="b\r\nhello\r\n0\r\n\r\n'), refused: bad },
  { name: "a chunk size with an underscore", send: chunked("5_0\r\nhello\r\n0\r\n\r\n"), refused: bad },
  {
    name: "a chunk size of many zeros",
    send: chunked(`${"0".repeat(99)}5\r\nhello\r\n0\r\n\r\n`),
    refused: bad,
  },
  {
    name: "a coding in the trailers",
    send: chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    refused: bad,
  },
  { name: "a trailer of 100 kB", send: chunked(`0\r\nA: ${"b".repeat(100_000)}\r\n\r\n`), refused: bad },
  { name: "a space before a trailer's colon", send: chunked("0\r\nA : b\r\n\r\n"), refused: bad },
  { name: "a folded trailer", send: chunked("0\r\nA: b\r\n c\r\n\r\n"), refused: bad },
  { name: "a trailer without a colon", send: chunked("0\r\nabc\r\n\r\n"), refused: bad },
  { name: "a trailer with a bare LF", send: chunked("0\r\nA: b\n\r\n"), refused: bad },
  {
    name: "a chunk extension",
    send: chunked("5;a=b\r\nhello\r\n0\r\n\r\n"),
    passed: [{ backend: "public", method: "POST", path: "/post", body: "hello" }],
  },
  {
    name: "a length in the trailers",
    send: chunked("5\r\nhello\r\n0\r\nContent-Length: 100\r\n\r\n"),
    refused: bad,
  },
  {
    name: "a host and a coding in the trailers",
    send: chunked("5\r\nhello\r\n0\r\nHost: secret.example\r\nX-Id: other\r\nA: b\r\n\r\n"),
    passed: [{ backend: "public", method: "POST", path: "/post", body: "hello" }],
  },
  {
    name: "leading zeros of a chunk size",
    send: chunked("0005\r\nhello\r\n000\r\n\r\n"),
    passed: [{ backend: "public", method: "POST", path: "/post", body: "hello" }],
  },
];

const lines: readonly HostileRequest[] = [
  { name: "HTTP/0.9", send: "GET /old\r\n\r\n", refused: [400, 505] },
  { name: "half a request of HTTP/0.9", send: "GET /old\r\n", refused: [400, 408] },
  { name: "HTTP/1.2", send: line("GET /line HTTP/1.2"), refused: [400, 505] },
  { name: "HTTP/2.0 as text", send: line("GET /line HTTP/2.0"), refused: [400, 505] },
  { name: "HTTP/1.10", send: line("GET /line HTTP/1.10"), refused: [400, 505] },
  { name: "HTTP/01.1", send: line("GET /line HTTP/01.1"), refused: [400, 505] },
  { name: "a version in lower case", send: line("GET /line http/1.1"), refused: bad },
  { name: "another protocol", send: line("GET /line SIP/2.0"), refused: [400, 505] },
  { name: "a protocol that looks like HTTP", send: line("GET /line RTSP/1.0"), refused: bad },
  { name: "two spaces before the path", send: line("GET  /line HTTP/1.1"), refused: bad },
  { name: "two spaces before the version", send: line("GET /line  HTTP/1.1"), refused: bad },
  { name: "a tab before the version", send: line("GET /line\tHTTP/1.1"), refused: bad },
  { name: "a line feed before the request", send: `\n${get("/line")}`, refused: bad },
  { name: "a carriage return before the request", send: `\r${get("/line")}`, refused: bad },
  { name: "many blank lines before the request", send: `${"\r\n".repeat(50)}${get("/line")}`, refused: bad },
  { name: "a space before the blank line", send: ` \r\n${get("/line")}`, refused: bad },
  { name: "a method of 1 kB", send: line(`${"A".repeat(1_000)} /line HTTP/1.1`), refused: [501] },
  { name: "an asterisk for the method of a preface", send: line("PRI * HTTP/1.1"), refused: bad },
  { name: "an asterisk with a query", send: line("OPTIONS *?a HTTP/1.1"), refused: bad },
  {
    name: "an asterisk for OPTIONS, which nobody here serves",
    send: line("OPTIONS * HTTP/1.1"),
    refused: [404],
  },
  { name: "a space behind the version", send: line("GET /line HTTP/1.1 "), refused: bad },
  { name: "a tab in the request line", send: line("GET\t/line HTTP/1.1"), refused: bad },
  { name: "a space in the path", send: line("GET /li ne HTTP/1.1"), refused: bad },
  { name: "a space before the method", send: line(" GET /line HTTP/1.1"), refused: bad },
  {
    name: "a method that nobody has registered",
    send: line("FETCH /line HTTP/1.1"),
    passed: [{ backend: "public", method: "FETCH", path: "/line" }],
  },
  {
    name: "a method in lower case, which is another method",
    send: line("get /line HTTP/1.1"),
    passed: [{ backend: "public", method: "get", path: "/line" }],
  },
  {
    name: "a method with every character of a token",
    send: line("M!#$%&'*+-.^_`|~0z /line HTTP/1.1"),
    passed: [{ backend: "public", method: "M!#$%&'*+-.^_`|~0z", path: "/line" }],
  },
  { name: "a method with a brace", send: line("G{T /line HTTP/1.1"), refused: bad },
  { name: "no method", send: line("/line HTTP/1.1"), refused: bad },
  { name: "no path", send: line("GET HTTP/1.1"), refused: bad },
  { name: "a request line that ends in LF", send: `GET /line HTTP/1.1\n${host}${close}\r\n`, refused: bad },
  { name: "a request line that ends in CR", send: `GET /line HTTP/1.1\r${host}${close}\r\n`, refused: bad },
  { name: "CONNECT", send: line("CONNECT public.example:443 HTTP/1.1"), refused: [400, 405, 501] },
  { name: "the preface of HTTP/2 with a wrong end", send: "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", refused: [] },
  { name: "TLS on a cleartext port", send: "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", refused: [400] },
  {
    name: "a blank line before the request",
    send: `\r\n${get("/line")}`,
    passed: [{ backend: "public", path: "/line" }],
  },
];

const fields: readonly HostileRequest[] = [
  { name: "a vertical tab in a value", send: field("A: b\x0bc"), refused: bad },
  { name: "a form feed behind a name", send: field("A\x0c: c"), refused: bad },
  { name: "a line of one space", send: field(" "), refused: bad },
  {
    name: "a line feed in place of the last line",
    send: `GET /field HTTP/1.1\r\n${host}${close}\n`,
    refused: bad,
  },
  { name: "an expectation that nobody knows", send: field("Expect: the-unexpected"), refused: [417] },
  { name: "a folded header", send: field("A: b\r\n c"), refused: bad },
  { name: "a folded first header", send: `GET /field HTTP/1.1\r\n ${host}${close}\r\n`, refused: bad },
  { name: "a header without a colon", send: field("Abc"), refused: bad },
  { name: "a header without a name", send: field(": b"), refused: bad },
  { name: "a space in a name", send: field("A b: c"), refused: bad },
  { name: "a space behind a name", send: field("A : c"), refused: bad },
  { name: "a tab behind a name", send: field("A\t: c"), refused: bad },
  { name: "a control character in a name", send: field("A\x01: c"), refused: bad },
  { name: "a byte beyond ASCII in a name", send: field("\xc4: c"), refused: bad },
  { name: "a NUL in a value", send: field("A: b\0c"), refused: bad },
  { name: "a control character in a value", send: field("A: b\x01c"), refused: bad },
  { name: "a DEL in a value", send: field("A: b\x7fc"), refused: bad },
  { name: "a bare LF between headers", send: field("A: b\nC: d"), refused: bad },
  { name: "a bare CR in a value", send: field("A: b\rTransfer-Encoding: chunked"), refused: bad },
  { name: "a header that ends in CR CR LF", send: field("A: b\r"), refused: bad },
  {
    name: "a head that ends in LF LF",
    send: `GET /field HTTP/1.1\r\n${host}X-Id: case-0000\n\n`,
    refused: bad,
  },
  { name: "a header of 1 MB", send: field(`A: ${"b".repeat(1_000_000)}`), refused: [431] },
  { name: "a header name of 1 MB", send: field(`${"a".repeat(1_000_000)}: b`), refused: [431] },
  { name: "a path of 1 MB", send: get(`/${"a".repeat(1_000_000)}`), refused: [414, 431] },
  { name: "ten thousand headers", send: field(`${"A: b\r\n".repeat(9_999)}A: b`), refused: [431] },
  { name: "a thousand headers", send: field(`${"A: b\r\n".repeat(999)}A: b`), refused: [431] },
];

const hosts: readonly HostileRequest[] = [
  { name: "no Host", send: hosted(""), refused: bad },
  { name: "no Host in HTTP/1.0", send: "GET /host HTTP/1.0\r\nX-Id: case-0000\r\n\r\n", refused: bad },
  { name: "two Hosts", send: hosted("Host: public.example\r\nHost: secret.example\r\n"), refused: bad },
  {
    name: "the same Host twice",
    send: hosted("Host: public.example\r\nHost: public.example\r\n"),
    refused: bad,
  },
  { name: "an empty Host", send: hosted("Host:\r\n"), refused: bad },
  { name: "a list of Hosts", send: hosted("Host: public.example, secret.example\r\n"), refused: bad },
  { name: "a Host with a path", send: hosted("Host: public.example/admin\r\n"), refused: bad },
  { name: "a Host with a user", send: hosted("Host: secret.example@public.example\r\n"), refused: bad },
  { name: "a Host with a scheme", send: hosted("Host: http://public.example\r\n"), refused: bad },
  { name: "a Host with a space", send: hosted("Host: public.example secret.example\r\n"), refused: bad },
  { name: "a Host with a tab", send: hosted("Host: public.example\tsecret.example\r\n"), refused: bad },
  { name: "a Host with a query", send: hosted("Host: public.example?x\r\n"), refused: bad },
  { name: "a Host with a hash", send: hosted("Host: public.example#x\r\n"), refused: bad },
  { name: "a Host with a backslash", send: hosted("Host: public.example\\x\r\n"), refused: bad },
  { name: "a Host with a percent sign", send: hosted("Host: public%2eexample\r\n"), refused: bad },
  { name: "a Host with two ports", send: hosted("Host: public.example:80:81\r\n"), refused: bad },
  { name: "a Host with letters as port", send: hosted("Host: public.example:http\r\n"), refused: bad },
  { name: "a Host with a port beyond range", send: hosted("Host: public.example:99999\r\n"), refused: bad },
  { name: "a Host with an empty label", send: hosted("Host: public..example\r\n"), refused: [400, 404] },
  { name: "a folded Host", send: hosted("Host: public.example\r\n secret.example\r\n"), refused: bad },
  { name: "a space before the colon of Host", send: hosted("Host : public.example\r\n"), refused: bad },
  { name: "an unknown Host", send: hosted("Host: elsewhere.example\r\n"), refused: [404] },
  { name: "a URL with a user", send: get("http://secret.example@public.example/"), refused: bad },
  { name: "a URL of another scheme", send: get("ftp://public.example/"), refused: bad },
  { name: "a URL without a host", send: get("http:///admin"), refused: bad },
  {
    name: "a URL against its Host",
    send: get("http://secret.example/url"),
    passed: [{ backend: "secret", path: "/url", host: "secret.example" }],
  },
  {
    name: "a URL in capitals",
    send: get("HTTP://PUBLIC.example/admin/../admin/url"),
    passed: [{ backend: "secret", path: "/admin/url" }],
  },
  {
    name: "a Host with a dot at its end",
    send: hosted("Host: secret.example.\r\n"),
    passed: [{ backend: "secret", path: "/host" }],
  },
  {
    name: "a Host in capitals",
    send: hosted("Host: SECRET.Example:80\r\n"),
    passed: [{ backend: "secret", path: "/host" }],
  },
];

const admin = (path: string): readonly Passed[] => [{ backend: "secret", path }];
const open = (path: string): readonly Passed[] => [{ backend: "public", path }];

/** Whatever a backend could read as /admin was routed as /admin. */
const paths: readonly HostileRequest[] = [
  { name: "dots up to /admin", send: get("/open/../admin"), passed: admin("/admin") },
  { name: "escaped dots", send: get("/open/%2e%2E/admin"), passed: admin("/admin") },
  { name: "half-escaped dots", send: get("/open/.%2e/admin"), passed: admin("/admin") },
  { name: "dots beyond the root", send: get("/../../admin"), passed: admin("/admin") },
  { name: "a dot segment", send: get("/./admin"), passed: admin("/admin") },
  { name: "two slashes", send: get("//admin"), passed: admin("/admin") },
  { name: "slashes and dots", send: get("/.//..//admin/"), passed: admin("/admin/") },
  { name: "escaped letters", send: get("/%61dmin"), passed: admin("/admin") },
  { name: "dots out of /admin", send: get("/admin/../open"), passed: open("/open") },
  { name: "dots at the end", send: get("/admin/.."), passed: open("/") },
  { name: "an escaped slash stays one segment", send: get("/open%2fadmin"), passed: open("/open%2Fadmin") },
  { name: "a doubly escaped letter stays as it is", send: get("/%2561dmin"), passed: open("/%2561dmin") },
  {
    name: "dots before an escaped slash stay one segment",
    send: get("/open/..%2fadmin"),
    passed: open("/open/..%2Fadmin"),
  },
  { name: "dots in the query", send: get("/open?/../admin"), passed: open("/open?/../admin") },
  { name: "a second question mark", send: get("/open?a?b=%2e%2e"), passed: open("/open?a?b=%2e%2e") },
  { name: "a backslash", send: get("/open\\..\\admin"), refused: bad },
  { name: "a hash", send: get("/open#/admin"), refused: bad },
  { name: "an escaped NUL", send: get("/admin%00"), refused: bad },
  { name: "a raw NUL", send: get("/admin\0"), refused: bad },
  { name: "a broken escape", send: get("/%zz"), refused: bad },
  { name: "half an escape", send: get("/open%2"), refused: bad },
  { name: "a percent sign alone", send: get("/open%"), refused: bad },
  { name: "a %u escape", send: get("/%u0061dmin"), refused: bad },
  { name: "a byte beyond ASCII", send: get("/\xe4"), refused: bad },
  { name: "a control character", send: get("/a\x01b"), refused: bad },
  { name: "a DEL", send: get("/a\x7fb"), refused: bad },
  { name: "a path without a slash", send: get("admin"), refused: bad },
  { name: "an asterisk with GET", send: get("*"), refused: bad },
];

const two = (first: string, second: string): string => `${first}${second}`;
const kept = (path: string): string => `GET ${path} HTTP/1.1\r\n${host}X-Id: case-0000\r\n\r\n`;

const sequences: readonly HostileRequest[] = [
  {
    name: "requests in one packet",
    send: two(kept("/first") + kept("/admin/second"), get("/third")),
    passed: [
      { backend: "public", path: "/first" },
      { backend: "secret", path: "/admin/second" },
      { backend: "public", path: "/third" },
    ],
  },
  {
    name: "rubbish behind a request that is still being served",
    send: two(kept("/first"), "rubbish\r\n\r\n"),
    passed: [{ backend: "public", path: "/first" }],
  },
  {
    name: "a refused request, then a fine one",
    send: two(post("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), kept("/never")),
    refused: bad,
  },
  {
    name: "chunks, then a request",
    send: two(
      `POST /post HTTP/1.1\r\n${host}X-Id: case-0000\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n`,
      get("/admin/next"),
    ),
    passed: [
      { backend: "public", method: "POST", path: "/post", body: "hello" },
      { backend: "secret", path: "/admin/next" },
    ],
  },
  {
    name: "requests behind one that was to be the last",
    send: two(get("/first"), kept("/never")),
    passed: [{ backend: "public", path: "/first" }],
  },
  {
    name: "a body longer than its Content-Length",
    send: two(
      `POST /post HTTP/1.1\r\n${host}X-Id: case-0000\r\nContent-Length: 5\r\n\r\nhello`,
      get("/admin/next"),
    ),
    passed: [
      { backend: "public", method: "POST", path: "/post", body: "hello" },
      { backend: "secret", path: "/admin/next" },
    ],
  },
];

export const corpusH1: readonly (readonly [title: string, cases: readonly HostileRequest[]])[] = [
  ["framing", framing],
  ["chunks", chunks],
  ["request lines", lines],
  ["header fields", fields],
  ["hosts", hosts],
  ["paths", paths],
  ["sequences", sequences],
];
