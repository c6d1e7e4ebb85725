/**
 * The contract of the benchmark. A measurement is one file in this folder that exports a `Measurement`, and one line in
 * measurements.ts. `prepare` makes the data and starts the servers; what it returns are the sides: functions that do the
 * work once and return its figures. The frame runs the sides in turn, so many rounds of them (A B C, A B C, ...), takes
 * the median of each figure of each side, and holds them against the goals: each goal is one row of the table.
 *
 *     export const example: Measurement = {
 *       name: 'example',
 *       needs: ['curl'],
 *       goals: [{ what: 'a file', kind: 'ratio', figure: 'seconds', ours: 'agent', peer: 'curl', atMost: 1.1 }],
 *       prepare: async (place) => ({
 *         sides: { agent: () => runProcess(...), curl: () => runProcess('curl', [...]) },
 *         close: async () => {},
 *       }),
 *     };
 *
 * processes.ts runs a process to its end (`runProcess`: seconds, cpuSeconds, peakBytes), keeps one running
 * (`startProcess`), and reads what a running tree of them has used (`usageOf`). A side that takes long may run once for
 * many figures. Both sides of a measurement get the same bytes from the same server. Work in `place.directory`, which
 * is removed afterwards, and use the smaller sizes when `place.quick` is set.
 */

/** By name, with the unit at its end: `seconds`, `cpuSeconds`, `peakBytes`, `longestBlockMs`, `coreShare`. */
export type Figures = Readonly<Record<string, number>>;

export type Side = () => Promise<Figures>;

export interface Place {
  /** A fresh directory on a real disk. */
  readonly directory: string;
  /** Small sizes: it is only to be shown that the measurement works. */
  readonly quick: boolean;
  /** Says on the standard error what is going on. */
  readonly say: (text: string) => void;
}

export interface Prepared {
  readonly sides: Readonly<Record<string, Side>>;
  /** Brings the machine to the same state before each run of a side; not measured. */
  readonly before?: () => Promise<void> | void;
  /** Ends what `prepare` started. The directory is removed by the frame. */
  readonly close: () => Promise<void>;
}

interface GoalBase {
  /** What is measured and, behind "against", with what: the text of the row. */
  readonly what: string;
  /** The name of the figure. */
  readonly figure: string;
  readonly atMost: number;
}

/** One side's figure divided by another's. */
interface RatioGoal extends GoalBase {
  readonly kind: 'ratio';
  readonly ours: string;
  readonly peer: string;
}

/** One side's figure itself. */
interface LimitGoal extends GoalBase {
  readonly kind: 'limit';
  readonly ours: string;
}

export type Goal = RatioGoal | LimitGoal;

export interface Measurement {
  /** For `--only`. */
  readonly name: string;
  /** Programs besides Node.js; where one is missing, the rows say so. */
  readonly needs: readonly string[];
  readonly goals: readonly Goal[];
  /** Rounds where the usual number (5, quick 1) would take too long or say too little. */
  readonly rounds?: number;
  readonly prepare: (place: Place) => Promise<Prepared>;
}

/** Something that cannot be measured on this machine; its message is what the rows say. */
export class NotHere extends Error {}
