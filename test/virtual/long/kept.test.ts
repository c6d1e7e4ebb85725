/** What runs by chance found in the agent, as cases of their own: a seed means something else when the runs change. */
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
    disk.database.exec('ALTER TABLE live_files RENAME TO elsewhere');
    // A promise that nothing waits for ends the test, as it ends the agent.
    await time.pass(10 * MINUTE_MS);
    disk.database.exec('ALTER TABLE elsewhere RENAME TO live_files');
    await world.pass(15 * MINUTE_MS);
    expect(agent.store.jobs.get(JOB)?.error).toBeNull();
  }));
