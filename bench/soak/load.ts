// The load on the tenants: the compiled driver, in a process of its own that also serves as their
// backends.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { driverProgram } from "../peers/programs.ts";
import { hostOf, PATHS, type Place } from "./world.ts";

const CONNECTIONS = 32;
const REQUESTS_PER_CONNECTION = 50;

export interface LoadReport {
  readonly requests: number;
  readonly failed: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly slowestMs: number;
}

export class Load {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;
  #slowest = 0;
  latest: LoadReport = { requests: 0, failed: 0, reasons: {}, slowestMs: 0 };

  private constructor(program: string, config: string) {
    this.#child = spawn(program, ["load", config], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: this.#child.stdout });
    this.#ended = new Promise((done) => lines.once("close", done));
    lines.on("line", (line) => {
      this.latest = JSON.parse(line) as LoadReport;
      this.#slowest = Math.max(this.#slowest, this.latest.slowestMs);
    });
  }

  static async start(
    file: string,
    place: Place,
    tenants: readonly string[],
    perSecond: number,
  ): Promise<Load> {
    const config = {
      address: `127.0.0.1:${place.port}`,
      hosts: tenants.map(hostOf),
      paths: PATHS,
      connections: CONNECTIONS,
      requestsPerConnection: REQUESTS_PER_CONNECTION,
      perSecond,
      backendPorts: place.backendPorts,
    };
    writeFileSync(file, JSON.stringify(config));
    return new Load(await driverProgram(), file);
  }

  go(): void {
    this.#child.stdin.write("go\n");
  }

  async stop(): Promise<LoadReport> {
    this.#child.stdin.end();
    await this.#ended;
    return { ...this.latest, slowestMs: this.#slowest };
  }

  kill(): void {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
  }
}
