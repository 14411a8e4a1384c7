/** Text of which parsers make something: pieces with a meaning, put together at random. */

import * as fc from "fast-check";

const signs = [..."abzAZ019_-.~!@#$%^&*()+=[]{}|\\:;\"'<>,?/ \t\n\r"];
const beyond = [
  "\u0000",
  "\u0001",
  "\u007f",
  "\u0080",
  "\u00a0",
  "\u00ff",
  "\u0100",
  "\u2028",
  "\u{1f600}",
  "\ud800",
];
const sequences =
  "%% %41 %zz %00 %2f %REQ(cookie)% %PROTOCOL% \\0 \\1 \\9 \\\\ // /./ /../ /.. ?a=b #x ** a.b host:80 [::1] xn-- ä ﬀ";
export const pieces: readonly string[] = [...signs, ...beyond, ...words(sequences)];

export function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** Of pieces, between nothing and more than anybody means. */
export function text(alphabet: readonly string[] = pieces): fc.Arbitrary<string> {
  return fc.oneof(
    {
      weight: 8,
      arbitrary: fc.array(fc.constantFrom(...alphabet), { maxLength: 6 }).map((all) => all.join("")),
    },
    { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
    { weight: 1, arbitrary: fc.string({ unit: "grapheme-ascii", maxLength: 200 }) },
    { weight: 1, arbitrary: fc.constantFrom("x".repeat(5_000), "x".repeat(20_000), "/x".repeat(9_000)) },
  );
}

const classNames = words(`
Any L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cs Cn LC Latin Greek Han
Cyrillic Kawi Nag_Mundari Garay Todhri Common Inherited Emoji Letter Uppercase ASCII Script=Latin Lowercase_Letter latin lu X
Alphabetic ID_Start Unknown Zzzz Sunuwar Tulu_Tigalari`);
const escapes = words(String.raw`
\d \D \w \s \b \B \A \z \Z \C \G \R \X \h \H \v \V \N \Q \E \Q*\E \a \f \n \r \t \e \cA \0 \07 \012 \123 \8 \377 \777 \1 \_ \ä
\- \/ \% \x41 \x4 \x{41} \x{10FFFF} \x{110000} \x{D800} \x{} \x{FFFE} \xff \u0041 \U0001f600 \x{E000} \x{ffff} \x{10000}
\pL \PL \pX \p \p{ \p{} \pN`);
const groups = words(String.raw`
(?i) (?s) (?m) (?U) (?x) (?u) (?i: (?-i) (?i-s: (?ims) (?--) (?) (?: (?P<n> (?<n> (?'n' (?P=n) (?P>n) (?= (?! (?<= (?> (?#c)
(?P<1> (?P<> (?P<ä> (?<n>a)(?<n>b) (?P<n>a) (a|b)* (|a) (a|) () (?:) a||b ^* $+ \b* (?i)ſ (?i)K (a*)* (a+)+$ .* .{0,255}`);
const repetitions = words(`
*? +? ?? ** *+ ++ {2} {2,} {2,3} {3,2} {,3} {0} {0,0} {1000} {1001} {2}{3} {2}? {2}+ {a} x{0}*
(a{10}){10} ((a{100}){10}){10} ((a{100}){100}){100}`);
const brackets = words(String.raw`
[a-z] [^a] []a] [^]a] [a-] [-a] [z-a] [[:alpha:]] [[:^alpha:]] [[:word:]] [[:foo:]] [:alpha:] [[=a=]] [[.a.]] [\d\w] [\D]
[a-\d] [\b] [a&&b] [a[b]] [] [^] [\x{10FFFF}] [\x{0}-\x{10FFFF}] [^\x{0}-\x{10FFFF}] [^\d\D] [\n] [\Q]\E] [\pL] [^\PL] [\C]
[\A] [a\-z] [ä-ü] [\s-a] [a--b]`);
const inExpressions: readonly string[] = [
  ...[..."abz09./_- \\\n\t^$|()[]{}*+?ä\u{1f600}\u0000\ud800"],
  ...[...escapes, ...groups, ...repetitions, ...brackets],
  ...classNames.flatMap((name) => [`\\p{${name}}`, `\\P{${name}}`, `\\p{^${name}}`, `[\\p{${name}}]`]),
];

/** Of RE2's syntax, and of what resembles it. */
export const expression: fc.Arbitrary<string> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...inExpressions) },
  { weight: 6, arbitrary: text(inExpressions) },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.constantFrom(...words("(a b) [ ] | * {9} (?i) \\p{L}")), { maxLength: 40 })
      .map((all) => all.join("")),
  },
);
