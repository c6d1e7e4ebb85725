/**
 * What the agents of a fleet do, moment by moment: how they share jobs and take them over, what they ask of the service, what
 * they write, log and report; how often each statement is sent to the database, and what is there in the end.
 */
import { expect, test } from 'vitest';
import type { JobId } from '../../../src/job.ts';
import { inWorld } from '../simulated-world.ts';
import { expectNoOthers, expectPrinted, play, rowText, type StepOf, Trace, treeOf } from '../trace.ts';
import { command, mendWay, restoreLater, watch } from './happenings.ts';
import { FleetWorld } from './world.ts';

const MINUTE_MS = 60_000;
/** Calls of the disk; what else a poll does there, a life of one agent shows. */
const SHOWN = /^(?:write|rm|truncate)$/;
const TABLES = ['agents', 'attempts', 'configured', 'habits', 'jobs', 'orders', 'rows', 'rules'] as const;

type Step = StepOf<FleetWorld>;

const [ANNA, BEN, CLEO] = [0, 1, 2];
const machineOf = ({ machines }: FleetWorld, index: number) => {
  const machine = machines[index];
  if (machine === undefined) throw new Error(`there is no machine ${index}`);
  return machine;
};
const id = (number: number) => `${500 + number}` as JobId;

const jobs = (count: number): Step => [
  `${count} jobs run, and each is watched`,
  async (world) => {
    for (let number = 1; number <= count; number += 1) {
      const jobId = id(number);
      world.service.submit(jobId).to('Running', world.time.wallMs);
      world.service.job(jobId).write(0, 'stdout', number);
      await watch(world, jobId, true);
    }
  },
  1,
];
const grow = (number: number, minutes = 0): Step => [
  `${id(number)} writes`,
  ({ service }) => service.job(id(number)).write(0, 'stdout', 2),
  minutes,
];
const ask = (number: number, kind: 'sync' | 'unwatch' | 'end'): Step => [
  `agent ${kind} ${id(number)}`,
  (world) => command(world, id(number), kind),
  1,
];
const to = (number: number, state: string, minutes: number): Step => [
  `${id(number)} is ${state}`,
  ({ service, time }) => service.job(id(number)).to(state, time.wallMs),
  minutes,
];

const SCENARIOS: Readonly<Record<string, readonly Step[]>> = {
  'jobs that are shared, taken over and handed on': [
    ...[jobs(5), grow(1), grow(2), ask(2, 'sync')],
    ['anna is killed', (world) => world.kill(machineOf(world, ANNA)), 1],
    ...[grow(1), grow(3, 1)],
    ['anna starts again', (world) => world.start(machineOf(world, ANNA)), 2],
    ['ben is drained', (world) => world.drain(machineOf(world, BEN)), 1],
    ...[ask(1, 'unwatch'), ask(4, 'end'), to(3, 'Finished', 3), to(3, 'Deleted', 3)],
    ['cleo stops', (world) => world.stop(machineOf(world, CLEO)), 1],
    grow(5, 2),
  ],
  'a database that is away, and agents that are cut off': [
    ...[jobs(4), grow(1)],
    ['the database is away', ({ postgres }) => postgres.stop(), 1],
    grow(2, 1),
    ['the database is back', ({ postgres }) => Object.assign(postgres, { isAway: false }), 1],
    ['anna cannot reach it', (world) => Object.assign(machineOf(world, ANNA).way, { out: false, back: false }), 2],
    ...[grow(1), grow(3, 1)],
    ['anna can', (world) => mendWay(world, machineOf(world, ANNA)), 2],
    ['the disk of ben is full', (world) => Object.assign(machineOf(world, BEN), { isFull: true }), 2],
    ['the disk of ben has room', (world) => Object.assign(machineOf(world, BEN), { isFull: false }), 2],
    ['a backup is put back', (world) => restoreLater(world, MINUTE_MS, 2_000), 4],
    ['the database is slow', ({ postgres }) => Object.assign(postgres, { slowMs: 1_500 }), 1],
    ['the database is fast', ({ postgres }) => Object.assign(postgres, { slowMs: 0 }), 1],
  ],
};

test.each(Object.entries(SCENARIOS))('%s: all that the agents of a fleet do', (name, steps) =>
  inWorld(FleetWorld.make(1), async (world) => {
    const nameOf = () => world.machines.find(({ agent }) => agent?.process === world.time.current)?.name ?? '';
    const trace = new Trace(world, nameOf, SHOWN);
    const statements = new Map<string, number>();
    world.postgres.onStatement = (text) => {
      const shown = text.replaceAll(/\s+/g, ' ').trim().slice(0, 100);
      statements.set(shown, (statements.get(shown) ?? 0) + 1);
    };
    await play(world, steps);
    for (const machine of world.machines) {
      await world.stop(machine);
      expect(machine.agent?.process.timers, 'it leaves no timers').toBe(0);
    }
    const sent = [...statements].sort(([a], [b]) => (a < b ? -1 : 1)).map(([text, times]) => `  ${times} ${text}\n`);
    const rows = TABLES.flatMap((table) =>
      [...world.postgres.tables.of(table)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => rowText(table, row)),
    );
    const all = `${trace.text}\nmirror\n${treeOf(world.mirrors)}\nstatements\n${sent.join('')}\ndatabase\n${rows.join('')}`;
    await expectPrinted(import.meta.dirname, name, all);
  }),
);

test('each text is one of these lives', () => expectNoOthers(import.meta.dirname, Object.keys(SCENARIOS)));
