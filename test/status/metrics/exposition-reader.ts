/** Reads the text format of Prometheus, as strictly as these tests need it. */
export interface ReadSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^(\w+)\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} (\d+)$/;
const LABEL = /(\w+)="((?:[^"\\\n]|\\[\\"n])*)"/g;
const MEANING: Readonly<Record<string, string>> = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

export function readExposition(text: string): readonly ReadSample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("# "))
    .map((line) => {
      const [, name = "", labels = "", value] = LINE.exec(line) ?? [];
      if (name === "") throw new Error(`not a sample: ${line}`);
      const read = Array.from(labels.matchAll(LABEL), ([, label = "", raw = ""]) => [
        label,
        raw.replaceAll(/\\[\\"n]/g, (pair) => MEANING[pair] ?? ""),
      ]);
      return { name, labels: Object.fromEntries(read), value: Number(value) };
    });
}

/** One line for each sample, the same for the same name and labels in any order. */
export function sampleText({ name, labels, value }: ReadSample): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${name} ${JSON.stringify(sorted)} ${value}`;
}
