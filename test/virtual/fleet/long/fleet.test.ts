/** Half a minute of simulated fleets: real agents, one PostgreSQL. `JOBTAIL_VIRTUAL_SEED` repeats a seed. */

import { expect, test } from 'vitest';
import type { JobId } from '../../../../src/job.ts';
import { writeSome } from '../../cluster-acts.ts';
import { restoreLater, standStill } from '../happenings.ts';
import { inFleet, runFleet, runFor, staleRows, strayRows } from '../run.ts';
import type { FleetMachine } from '../world.ts';

const SEED = process.env['JOBTAIL_VIRTUAL_SEED'];
const SECONDS = Number(process.env['JOBTAIL_VIRTUAL_SECONDS'] ?? 15);

test('a fleet holds its promises, whatever happens', { timeout: 900_000 + SECONDS * 2_000 }, async () => {
  if (SEED === undefined) await runFor(SECONDS);
  else await runFleet(Number(SEED));
});

test('a fleet does the same with the same seed', async () => {
  const first = await runFleet(2, 3);
  expect(first.statements).toBeGreaterThan(0);
  expect(await runFleet(2, 3)).toEqual(first);
});

test('a backup that is put back within a heartbeat makes no second writer', () =>
  inFleet(1, async (world) => {
    const [owner, next] = world.machines as [FleetMachine, FleetMachine];
    const writers = (jobId: JobId) => world.machines.filter((machine) => machine.mayWrite(jobId));
    await world.pass(30_000);
    // In the backup, all jobs wait for an owner.
    for (const machine of world.machines) await world.drain(machine);
    restoreLater(world, 60_000, 1);
    await world.start(owner);
    await world.pass(55_000);
    expect(world.jobIds().flatMap(writers)).toEqual([owner, owner, owner]);
    // It may write until its lease ends, and does not see the backup.
    owner.way.out = false;
    await world.start(next);
    for (let left = 400; left > 0; left -= 1) {
      await world.pass(250);
      for (const jobId of world.jobIds()) expect(writers(jobId).length).toBeLessThan(2);
    }
    expect(world.jobIds().flatMap(writers)).toEqual([next, next, next]);
  }));

test('owners write what a backup that is put back does not have', () =>
  inFleet(1, async (world) => {
    const { chance, service, machines } = world;
    const stale = () => machines.flatMap((machine) => staleRows(world, machine));
    const writeAll = () => {
      for (const job of service.jobs.values()) writeSome(job, chance);
    };
    await world.pass(30_000);
    restoreLater(world, 60_000, 1_000);
    // Only the backup does not have its files: no later poll changes their rows.
    for (const job of service.jobs.values()) job.addTask();
    await world.pass(50_000);
    writeAll();
    await world.pass(90_000);
    expect(stale()).toEqual([]);
    // And one of the last seconds.
    for (let round = 0; round < 12; round += 1) {
      await world.pass(chance.spread(20_000, 40_000));
      writeAll();
      await world.pass(chance.spread(500, 4_000));
      restoreLater(world, 3_000, 1);
      // Some rows are on their way at each moment.
      for (let left = 20; left > 0 && (left > 16 || stale().length > 0); left -= 1) await world.pass(3_000);
      expect(stale()).toEqual([]);
    }
  }));

test('an agent forgets a job that it lost while its disk was full', () =>
  inFleet(1, async (world) => {
    await world.pass(30_000);
    const loser = world.machines.find(({ agent }) => agent?.store.jobs.known().size) as FleetMachine;
    loser.isFull = true;
    standStill(world, loser, 60_000);
    await world.pass(62_000);
    expect(strayRows(loser)).not.toEqual([]);
    loser.isFull = false;
    // Before it acquires a job.
    await world.pass(1_500);
    expect(loser.agent?.store.jobs.known().size).toBe(0);
  }));
