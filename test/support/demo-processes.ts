/** `agent demo` in a process of its own, and what it may not leave behind. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, type TestContext } from 'vitest';
import { Program } from './e2e-program.ts';
import { until } from './e2e-until.ts';
import { needsThat } from './needs.ts';
import { temporaryDirectory } from './temp-directory.ts';

export const demoOptions = () => needsThat(fs.existsSync('/proc/self/cmdline'), 'the demo: it needs /proc');

/** A demo whose temporary directory is below a directory of the test. */
export function startDemo({ onTestFinished }: TestContext, seconds = 4, ...flags: readonly string[]) {
  const directory = temporaryDirectory(undefined, { onTestFinished });
  const demo = new Program(['demo', '--seconds', String(seconds), ...flags], {
    cwd: directory,
    env: { TMPDIR: directory },
  });
  /** The path of a file of the demo, as soon as it is there. */
  const found = (...name: string[]) =>
    until(name.join('/'), () => {
      if (demo.end !== undefined) throw new Error(`the demo ended: ${demo.end.stderr}`);
      const [place = ''] = fs.readdirSync(directory);
      const file = path.join(directory, place, ...name);
      return place !== '' && fs.existsSync(file) && file;
    });
  return { directory, demo, found };
}

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
