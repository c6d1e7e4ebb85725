/**
 * The benchmark: `npm run bench`. What a measurement is stands in measurement.ts.
 *
 *     --quick       small sizes and few rounds, to show that it works
 *     --only NAME   this measurement alone; may be given several times
 *     --rounds N    instead of five (quick: one)
 *     --json        all figures as JSON on the standard output instead of the table
 *     --within S    in random order, and none begins after so many seconds
 *     --before DIR  this checkout and the one in DIR by turns: one table of both
 *     --list        names the measurements
 *
 * `BENCH_NODE_ARGS` gives Node.js more arguments on our side, as `--cpu-prof`. The table goes to the standard output,
 * the progress to the standard error. Ends with 1 if a measurement failed, never because a goal was not met; with 2 if
 * the arguments are wrong.
 */
import fs from 'node:fs';
import os from 'node:os';
import { JobtailError } from '../src/errors.ts';
import { compareWith } from './before.ts';
import { countOf, endInOneLine, temporaryDirectory, valuesOf } from './command-line.ts';
import { type Measurement, NotHere } from './measurement.ts';
import { MEASUREMENTS } from './measurements.ts';
import { endProcesses, hasProgram } from './processes.ts';
import { type Row, type Runs, rowOf, runRounds, type Unmeasured } from './rounds.ts';
import { tableOf } from './table.ts';

interface Options {
  readonly quick: boolean;
  readonly rounds: number | undefined;
}

interface Outcome {
  readonly rows: readonly (Row | Unmeasured)[];
  readonly runs: Runs;
  readonly failed: boolean;
}

const say = (text: string) => process.stderr.write(`${text}\n`);

async function main(): Promise<void> {
  const values = valuesOf({
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    json: { type: 'boolean', default: false },
    within: { type: 'string' },
    before: { type: 'string' },
    list: { type: 'boolean', default: false },
  });
  if (values.list) {
    process.stdout.write(`${MEASUREMENTS.map(({ name }) => name).join('\n')}\n`);
    return;
  }
  const chosen = values.only === undefined ? MEASUREMENTS : values.only.map(measurementOf);
  const within = values.within === undefined ? undefined : countOf('--within', values.within);
  const order = within === undefined ? chosen : shuffled(chosen);
  const rounds = values.rounds === undefined ? undefined : countOf('--rounds', values.rounds);
  const options = { quick: values.quick, rounds };
  if (values.before !== undefined) {
    const { table, failed } = await compareWith(values.before, order, options);
    process.stdout.write(table);
    if (failed) process.exitCode = 1;
    return;
  }
  const outcomes: Record<string, Outcome> = {};
  for (const measurement of order) {
    if (within !== undefined && performance.now() > within * 1_000) break;
    outcomes[measurement.name] = await measure(measurement, options);
  }
  const rows = Object.values(outcomes).flatMap((outcome) => outcome.rows);
  const table = () => `${tableOf(`Node.js ${process.version.slice(1)}`, rows, options.quick)}\n`;
  process.stdout.write(values.json ? jsonOf(outcomes, options) : table());
  if (Object.values(outcomes).some(({ failed }) => failed)) process.exitCode = 1;
}

/** Fisher and Yates. */
function shuffled<Item>(items: readonly Item[]): Item[] {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other] as Item, order[last] as Item];
  }
  return order;
}

function measurementOf(name: string): Measurement {
  const found = MEASUREMENTS.find((one) => one.name === name);
  if (found === undefined) throw new JobtailError('usage', `no measurement is called "${name}": see --list`);
  return found;
}

/** A measurement that fails stops no other. */
async function measure(measurement: Measurement, options: Options): Promise<Outcome> {
  const { name, needs, goals, prepare } = measurement;
  const unmeasured = (why: string, failed: boolean): Outcome => ({
    rows: goals.map(({ what }) => ({ measurement: name, what, why })),
    runs: {},
    failed,
  });
  const missing = needs.filter((program) => !hasProgram(program));
  if (missing.length > 0) return unmeasured(`${missing.join(', ')} is missing`, false);
  const directory = temporaryDirectory('jobtail-bench-');
  const sayOf = (text: string) => say(`${name}: ${text}`);
  try {
    const prepared = await prepare({ directory, quick: options.quick, say: sayOf });
    try {
      const rounds = options.rounds ?? (options.quick ? 1 : (measurement.rounds ?? 5));
      const runs = await runRounds(prepared, rounds, sayOf);
      return { rows: goals.map((goal) => rowOf(name, goal, runs)), runs, failed: false };
    } finally {
      await prepared.close();
    }
  } catch (error) {
    sayOf(error instanceof NotHere ? error.message : String(error instanceof Error ? error.stack : error));
    const [why = ''] = String(error instanceof Error ? error.message : error).split('\n');
    return unmeasured(why, !(error instanceof NotHere));
  } finally {
    await endProcesses();
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

function jsonOf(outcomes: Readonly<Record<string, Outcome>>, { quick }: Options): string {
  const [processor] = os.cpus();
  const machine = {
    processor: processor?.model,
    cores: os.cpus().length,
    memoryBytes: os.totalmem(),
    kernel: os.release(),
    node: process.version,
  };
  return `${JSON.stringify({ date: new Date().toISOString(), quick, machine, measurements: outcomes }, null, 2)}\n`;
}

await endInOneLine(main);
