/**
 * The releases of Node.js that the benchmark runs on, one after the other: the one that runs it, and the one that is
 * shipped, where `npm run setup:fleet` put it and it is another one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { FLEET_NODE } from './fleet-node.ts';
import type { Row, Unmeasured } from './rounds.ts';
import { tableOf } from './table.ts';

/** What `--here --json` prints, as far as the table needs it. */
interface Report {
  readonly quick: boolean;
  readonly machine: { readonly node: string };
  readonly measurements: Readonly<Record<string, { readonly rows: readonly (Row | Unmeasured)[] }>>;
}

/** Node.js with its arguments before the program. */
function releases(): readonly (readonly string[])[] {
  const here = [process.execPath];
  return FLEET_NODE[0] !== process.execPath ? [here, FLEET_NODE] : [here];
}

/** Runs this program with `args` on each release: their reports, and whether a measurement failed. */
export async function runOnEach(args: readonly string[]): Promise<{ reports: readonly Report[]; failed: boolean }> {
  const reports: Report[] = [];
  let failed = false;
  const program = process.argv[1] ?? '';
  for (const [node = '', ...options] of releases()) {
    // Whatever it starts on the same release loads the same packages.
    const env = { ...process.env, NODE_OPTIONS: [process.env['NODE_OPTIONS'] ?? '', ...options].join(' ').trim() };
    const child = spawn(node, [program, ...args, '--here'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const [printed] = await Promise.all([text(child.stdout), once(child, 'close')]);
    failed ||= child.exitCode !== 0;
    if (printed === '') throw new Error(`${node} ended with ${child.exitCode ?? child.signalCode}`);
    reports.push(JSON.parse(printed) as Report);
  }
  return { reports, failed };
}

/** One table of all releases, as bench/RESULTS.md has it. */
export function tableOfReleases(reports: readonly Report[]): string {
  const columns = reports.map(({ machine, measurements }) => ({
    title: `Node.js ${machine.node.slice(1)}`,
    rows: Object.values(measurements).flatMap((outcome) => outcome.rows),
  }));
  return `${tableOf(
    columns,
    reports.some(({ quick }) => quick),
  )}\n`;
}
