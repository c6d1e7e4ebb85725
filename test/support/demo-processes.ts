/** What a demo may not leave behind. */
import fs from 'node:fs';
import { expect } from 'vitest';
import { until } from './e2e-until.ts';

/** Processes that were started with a path below the directory, or work there. */
export function processesIn(directory: string): string[] {
  return fs.readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const command = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const isOfIt = command.includes(directory) || fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(directory);
      return isOfIt ? [command] : [];
    } catch {
      return [];
    }
  });
}

export async function expectNothingLeft(directory: string): Promise<void> {
  expect(fs.readdirSync(directory)).toEqual([]);
  // Who was killed may take a moment to be gone.
  await until('all processes to be gone', () => processesIn(directory).length === 0);
}
