// What the driver tells of one size, and what is kept of a whole run. All times that end in Ms are
// milliseconds, memory is in bytes.

export interface Spread {
  readonly count: number;
  readonly median: number;
  readonly p99: number;
  readonly longest: number;
  readonly missed: number;
}

export interface Bystanders {
  readonly requests: number;
  readonly failed: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly times: Spread;
  readonly outageMs: number;
}

export interface Writes {
  readonly accepted: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
}

export interface Cost {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly peakBytes: number;
  /** None of what is no container. */
  readonly workingSetBytes: number;
  readonly sumBytes: number;
  readonly containers: number;
  readonly restarts: number;
}

export interface Lies {
  readonly programmedNotAnswering: number;
  readonly answeringNotProgrammed: number;
  readonly longestMs: number;
  readonly lasting: number;
  readonly probes: number;
}

export interface Growth {
  readonly setsAdded: number;
  readonly objects: number;
  readonly creationSeconds: number;
  readonly trueSeconds: number;
  readonly trueAfterSeconds: number;
  readonly allTrue: boolean;
  readonly tally: {
    readonly sets: number;
    readonly setsProgrammed: number;
    readonly setsCounted: number;
    readonly routes: number;
    readonly routesTrue: number;
  };
  readonly lies: Lies;
  readonly others: Bystanders;
  readonly writes: Writes;
  readonly cost: Readonly<Record<string, Cost>>;
  readonly sweep: {
    readonly requests: number;
    readonly failed: number;
    readonly reasons: Readonly<Record<string, number>>;
    readonly complete: boolean;
  };
  readonly driverCpuSeconds: number;
}

export interface Restart {
  readonly readySeconds: number;
  readonly problem?: string;
  readonly writes: Writes;
  readonly statusWrites: number;
  readonly others: Bystanders;
  readonly servedSeconds?: number;
}

export interface SizeResult {
  readonly size: number;
  readonly growth: Growth;
  readonly propagation: Readonly<Record<string, Spread>> | null;
  readonly handOver: Pick<Bystanders, "requests" | "failed" | "reasons"> & { readonly times: Spread };
  readonly restarts?: {
    readonly controller: Restart;
    readonly controllerChange: Restart;
    readonly dataPlaneRollout: Restart;
    readonly dataPlaneLoss: Restart;
  };
  readonly leaderChanges?: {
    readonly runs: number;
    readonly lies: Lies;
    readonly true: Spread;
    readonly others: Bystanders;
    readonly problem?: string;
  };
}

export interface ContestantResult {
  readonly id: string;
  readonly title: string;
  readonly sizes: readonly SizeResult[];
  /** Why it got no further, where it did not. */
  readonly problem?: string;
}

export interface PeersRun {
  readonly date: string;
  /** Smaller on purpose: it is not held against the bars. */
  readonly short?: boolean;
  readonly commit: string;
  readonly machine: string;
  readonly routesPerSet: number;
  readonly sizes: readonly number[];
  readonly contestants: readonly ContestantResult[];
}
