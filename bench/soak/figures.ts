/** What the soak measured, and whether it stayed flat. */

/** How the agent stood at one moment. */
export interface Sample {
  /** Since the soak began. */
  readonly minute: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
  /** Open file descriptors. */
  readonly handles: number;
  /** Age of the last visit of the watched job that waits longest, failing ones included. */
  readonly lagSeconds: number;
  /** Delay of the event loop, 99th percentile since the sample before. */
  readonly blockedMs: number;
  /** Of one core, since the sample before. */
  readonly coreShare: number;
}

export interface Figure {
  readonly what: string;
  readonly unit: string;
  /** Medians of the four quarters of the time after the warm-up, and the greatest of all samples. */
  readonly quarters: readonly number[];
  readonly most: number;
  readonly isFlat: boolean;
}

/** `slack` is what the last quarter may have more than the first, besides a fifth of it. */
const FIGURES: readonly { what: string; unit: string; slack: number; of: (sample: Sample) => number }[] = [
  { what: 'resident memory', unit: 'MB', slack: 8, of: ({ residentBytes }) => residentBytes / 1e6 },
  { what: 'JavaScript heap', unit: 'MB', slack: 8, of: ({ heapBytes }) => heapBytes / 1e6 },
  { what: 'open handles', unit: '', slack: 16, of: ({ handles }) => handles },
  { what: 'the oldest poll of a job', unit: 's ago', slack: 5, of: ({ lagSeconds }) => lagSeconds },
  { what: 'delay of the event loop (p99)', unit: 'ms', slack: 10, of: ({ blockedMs }) => blockedMs },
  // For information: it depends on what else the machine does.
  { what: 'one core', unit: '%', slack: 100, of: ({ coreShare }) => coreShare * 100 },
];

export function figuresOf(samples: readonly Sample[], warmShare: number): Figure[] {
  const warm = samples.slice(Math.floor(samples.length * warmShare));
  const quarter = Math.max(1, Math.floor(warm.length / 4));
  return FIGURES.map(({ what, unit, slack, of }) => {
    const quarters = [0, 1, 2, 3].map((index) => medianOf(warm.slice(index * quarter, (index + 1) * quarter).map(of)));
    const [first = Number.NaN, , , last = Number.NaN] = quarters;
    const most = Math.max(...samples.map(of));
    return { what, unit, quarters, most, isFlat: last <= first * 1.2 + slack };
  });
}

export function tableOf(figures: readonly Figure[], done: Readonly<Record<string, number>>): string {
  const facts = Object.entries(done).map(([name, count]) => `${name} ${count}`);
  const lines = figures.map(({ what, unit, quarters, most, isFlat }) => {
    const cells = [...quarters, most].map((value) => value.toFixed(1));
    return `| ${what}${unit === '' ? '' : `, ${unit}`} | ${cells.join(' | ')} | ${isFlat ? 'yes' : 'NO'} |`;
  });
  return [
    facts.join(', '),
    '',
    '| figure | 1st quarter | 2nd | 3rd | 4th | most | flat |',
    '|---|---|---|---|---|---|---|',
    ...lines,
  ].join('\n');
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
