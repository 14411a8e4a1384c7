import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { joinFlags, suiteFlags } from "../../tools/cluster/conformance.ts";
import { unusableAddress, usableAddress } from "../../tools/cluster/network.ts";
import { cacheDir, clusterNamed, refuseHidden } from "../../tools/host/places.ts";
import { identify, isAlive, processIdFromStat } from "../../tools/host/processes.ts";
import { productionFolders } from "../../tools/images/image-files.ts";
import { linkedPaths } from "../../tools/images/product-image.ts";

describe("places", () => {
  it("keeps the cache where the environment says", () => {
    expect(cacheDir({ MERGEWAY_CACHE: "/x/y" })).toBe("/x/y");
    expect(cacheDir({ XDG_CACHE_HOME: "/x" })).toBe("/x/mergeway");
    expect(cacheDir({ MERGEWAY_CACHE: "" })).toMatch(/\/\.cache\/mergeway$/);
  });

  it("takes a cluster's name from the flag, then the environment", () => {
    const env = { MERGEWAY_CLUSTER: "from-env", MERGEWAY_CLUSTER_STATE: "/state" };
    expect(clusterNamed("flag", env).dir).toBe("/state/flag");
    expect(clusterNamed(undefined, env).dir).toBe("/state/from-env");
    expect(clusterNamed(undefined, {}).name).toBe("default");
  });

  it.each(["", "..", "a/b", "A", "-a", "a-", "x".repeat(33), "a b"])("refuses %j as a name", (name) => {
    expect(() => clusterNamed(name, {})).toThrow("is no cluster name");
  });

  it("refuses folders that a cluster cannot see", () => {
    expect(() => refuseHidden("the cache", "/var/lib/ci/cache")).toThrow(
      "a cluster sees a /var/lib of its own",
    );
    expect(() => refuseHidden("the cache", "/var/library")).not.toThrow();
  });
});

describe("processes", () => {
  it("reads pid and start time behind a name with brackets and spaces", () => {
    const fields = Array.from({ length: 30 }, (_, index) => `f${index + 4}`);
    expect(processIdFromStat(`42 (a) b) S ${fields.join(" ")}`)).toEqual({ pid: 42, started: "f22" });
  });

  it("knows a process from a later one with the same number", async () => {
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    try {
      const id = identify(child.pid ?? 0);
      expect(id).toBeDefined();
      expect(isAlive({ pid: child.pid ?? 0, started: id?.started ?? "" })).toBe(true);
      expect(isAlive({ pid: child.pid ?? 0, started: "1" })).toBe(false);
    } finally {
      child.kill("SIGKILL");
      await once(child, "close");
    }
    expect(identify(child.pid ?? 0)).toBeUndefined();
  });
});

describe("the suite's flags", () => {
  it("names the implementation and the addresses unless the caller does", () => {
    const flags = suiteFlags(["--organization=other", "-usable-address=10.0.0.1"], { version: "v1.2.3" });
    expect(flags).toContain("--version=v1.2.3");
    expect(flags).toContain(`--unusable-address=${unusableAddress}`);
    expect(flags).not.toContain(`--usable-address=${usableAddress}`);
    expect(flags.filter((flag) => flag.includes("organization"))).toEqual(["--organization=other"]);
  });

  it("gives the suite, which runs elsewhere, an absolute report path", () => {
    const flags = suiteFlags(["--report-output=x.yaml"], { version: "v1" });
    expect(flags).toContain(`--report-output=${process.cwd()}/x.yaml`);
  });

  it("joins flags with their values and refuses stray words", () => {
    expect(joinFlags(["--run-test", "X", "--debug", "--a=b"])).toEqual(["--run-test=X", "--debug", "--a=b"]);
    expect(() => joinFlags(["X"])).toThrow('"X" is no flag');
    expect(() => joinFlags(["--a=b", "X"])).toThrow('"X" is no flag');
  });
});

describe("the product's image", () => {
  it("holds production dependencies, at every depth, and no others", () => {
    const packages = {
      "": {},
      "node_modules/a": {},
      "node_modules/a/node_modules/b": { optional: true },
      "node_modules/dev": { dev: true },
      "node_modules/both": { devOptional: true },
    };
    expect(productionFolders({ packages })).toEqual(["node_modules/a", "node_modules/a/node_modules/b"]);
  });

  it("holds what this package depends on", () => {
    const read = (name: string): unknown =>
      JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), "utf8"));
    const lock = read("package-lock.json") as Parameters<typeof productionFolders>[0];
    const manifest = read("package.json") as Record<string, Record<string, string>>;
    const folders = productionFolders(lock);
    for (const name of Object.keys(manifest["dependencies"] ?? {})) {
      expect(folders).toContain(`node_modules/${name}`);
    }
    for (const name of Object.keys(manifest["devDependencies"] ?? {})) {
      expect(folders).not.toContain(`node_modules/${name}`);
    }
  });

  it("reads the libraries and the loader from ldd", () => {
    const lines = [
      "\tlinux-vdso.so.1 (0x00007ffd)",
      "\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f00)",
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f01)",
    ];
    expect(linkedPaths(lines.join("\n"))).toEqual([
      "/lib/x86_64-linux-gnu/libdl.so.2",
      "/lib64/ld-linux-x86-64.so.2",
    ]);
    expect(() => linkedPaths("\tlibnone.so => not found")).toThrow("lacks the library libnone.so");
  });
});
