/**
 * Preloaded into an agent under measurement (`node --import`): from the signal SIGUSR2 on, measures how long its event
 * loop is blocked, and at its end writes the longest time, with its peak memory and its processor time since the
 * signal, to the file that BENCH_LOOP_DELAY names.
 */
import fs from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { peakOf } from './processes.ts';

export interface LoopFigures {
  readonly longestBlockMs: number;
  readonly cpuSeconds: number;
  readonly peakBytes: number;
}

/** The delay is the time between two ticks of a timer: this much of it is no delay. */
const RESOLUTION_MS = 1;

const file = process.env['BENCH_LOOP_DELAY'] ?? '';
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let before = process.cpuUsage();
process.on('SIGUSR2', () => {
  before = process.cpuUsage();
  delay.enable();
});
process.on('exit', () => {
  const { user, system } = process.cpuUsage(before);
  const figures: LoopFigures = {
    longestBlockMs: Math.max(0, delay.max / 1e6 - RESOLUTION_MS),
    cpuSeconds: (user + system) / 1e6,
    // The maximum of getrusage is inherited from the process that started this one.
    peakBytes: peakOf(process.pid),
  };
  fs.writeFileSync(file, JSON.stringify(figures));
});
