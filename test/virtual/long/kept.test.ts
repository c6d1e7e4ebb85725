/** What runs by chance found in the agent, as cases of their own: a seed means something else when the runs change. */
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { JOB, MINUTE_MS, order } from '../commands.ts';
import { inWorld } from '../simulated-world.ts';
import { World } from '../world.ts';

test('a state that cannot be read while the job service fails ends no agent', () =>
  inWorld(World.make(1, { minIntervalSeconds: 1, results: false, notify: false }), async (world) => {
    const { agent, service, disk, time } = world;
    service.submit(JOB).to('Running', time.wallMs);
    order(world, true);
    await world.pass(MINUTE_MS);
    const operations = ['ListJobsForCurrentUser'] as const;
    service.faults.push({ code: 'unavailable', operations, share: 1, until: time.passedMs + 10 * MINUTE_MS });
    const rename = (from: string, to: string) =>
      disk.aside(() =>
        disk.database.beside(() => {
          const database = new Database(path.join(agent.store.directory, 'agent.db'));
          database.exec(`ALTER TABLE ${from} RENAME TO ${to}`);
          database.close();
        }),
      );
    rename('live_files', 'elsewhere');
    // A promise that nothing waits for ends the test, as it ends the agent.
    await time.pass(10 * MINUTE_MS);
    rename('elsewhere', 'live_files');
    await world.pass(15 * MINUTE_MS);
    expect(agent.store.jobs.get(JOB)?.error).toBeNull();
  }));
