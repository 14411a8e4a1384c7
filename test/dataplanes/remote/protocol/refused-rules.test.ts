import { describe, expect, test } from "vitest";
import type { VersionReport } from "../../../../src/dataplanes/remote/protocol/protocol.ts";
import { ReportState } from "../../../../src/dataplanes/remote/protocol/report-state.ts";
import { soundReports } from "../../../../src/dataplanes/remote/protocol/sound-reports.ts";

const rule = {
  kind: "HTTPRoute",
  namespace: "a",
  name: "r",
  rule: 0,
  message: "the data plane refuses rules[0].retry",
};
const refused: VersionReport = {
  id: "host:g:l:h",
  state: "rejected",
  reason: "Refused",
  message: "no",
  rules: [rule],
};

describe("refused rules of a host", () => {
  test("arrive as a pod has sent them", () => {
    expect(soundReports(JSON.parse(JSON.stringify([refused])))).toEqual([refused]);
  });

  test("are dropped or cut if they are invalid, too many or too long", () => {
    const odd = [
      null,
      1,
      {},
      { ...rule, rule: "0" },
      { ...rule, name: "n".repeat(300) },
      { ...rule, message: 1 },
    ];
    expect(soundReports([{ ...refused, rules: [...odd, rule] }])).toEqual([refused]);
    const [many] = soundReports([{ ...refused, rules: Array.from({ length: 1_000 }, () => rule) }]);
    expect(many?.rules).toHaveLength(64);
    const [long] = soundReports([{ ...refused, rules: [{ ...rule, message: "m".repeat(10_000) }] }]);
    expect(long?.rules?.[0]?.message).toHaveLength(256);
  });

  test("are part of the digest that both sides compare", () => {
    const one = new ReportState();
    const other = new ReportState();
    one.set(refused);
    other.set({ ...refused, rules: [{ ...rule, rule: 1 }] });
    expect(one.get(refused.id)?.rules).toEqual([rule]);
    expect(one.digest).not.toBe(other.digest);
    other.set(refused);
    expect(one.digest).toBe(other.digest);
  });
});
