/** A fleet is reported what to do at any of its agents, and each tells the same of it. */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { Fleet, type FleetAgent, mustSucceed } from '../../../support/fleet.ts';
import { needs } from '../../../support/needs.ts';

/** Beyond a poll, with the time a command takes on a busy machine. */
const GAP_MS = 5_000;

const statusOf = async (agent: FleetAgent) =>
  JSON.parse(await mustSucceed(agent, 'status', '--json')) as {
    readonly agents: readonly object[];
    readonly jobs: readonly { readonly jobId: string; readonly owner: string }[];
  };

it('a fleet takes commands at any agent, and a drained one hands over', needs('postgres'), async (context) => {
  const fleet = await Fleet.make(context, { jobs: 12, agents: ['anna', 'ben'] });
  const [anna, ben] = [fleet.agent('anna'), fleet.agent('ben')];
  await fleet.runSpread();
  await fleet.untilEqual();

  // The same from both sides, with the owner of each job.
  const owners = await fleet.owners();
  for (const agent of [anna, ben]) {
    const { agents, jobs } = await statusOf(agent);
    expect(agents).toMatchObject(['anna', 'ben'].map((name) => ({ name, state: 'alive' })));
    expect(new Map(jobs.map(({ jobId, owner }) => [jobId, owner]))).toEqual(owners);
  }

  // A job of ben's is synced and ended by anna's command, and the other way round.
  for (const [agent, other] of [
    [anna, 'ben'],
    [ben, 'anna'],
  ] as const) {
    const [job] = fleet.jobs.filter(({ jobId }) => owners.get(jobId) === other);
    if (job === undefined) throw new Error(`${other} has no job`);
    for (const file of fleet.filesOf(job)) file.append(50);
    await mustSucceed(agent, 'sync', job.jobId);
    // Without a job service, its end cannot be seen.
    expect(await agent.command('wait', job.jobId, '--timeout', '1s')).toMatchObject({ code: 3 });
    expect(fleet.filesOf(job).map(({ isEqual }) => isEqual)).toEqual([true, true]);
    for (const file of fleet.filesOf(job)) file.append(50);
    expect(await mustSucceed(agent, 'unwatch', job.jobId)).toContain('4 verified');
    expect(fleet.filesOf(job).map(({ isEqual }) => isEqual)).toEqual([true, true]);
    await mustSucceed(agent, 'verify', job.jobId);
    const ended = await agent.command('wait', job.jobId);
    expect(ended).toMatchObject({ code: 1, stdout: expect.stringContaining('it is not followed any more') });
    // A job that ended may be followed again.
    await mustSucceed(agent, 'watch', job.jobId, ...job.tasks.flatMap(({ taskId }) => ['--task', taskId]));
  }
  await fleet.untilOwned();

  // In order: each job has its next owner at once, and the agent is gone.
  const drainedAt = Date.now();
  await mustSucceed(ben, 'run', '--drain');
  expect((await ben.program.ended).code).toBe(0);
  await fleet.untilOwned(['ben']);
  const attempts = await fleet.attempts();
  for (const [index, { agent, endedAt, how, jobId }] of attempts.entries()) {
    const next = attempts[index + 1];
    if (agent !== 'ben' || endedAt === null || endedAt < drainedAt) continue;
    expect([how, next?.jobId]).toEqual(['handed-over', jobId]);
    expect((next?.takenAt ?? Number.POSITIVE_INFINITY) - endedAt).toBeLessThan(GAP_MS);
  }
  fleet.grow();
  await fleet.expectEqual();
  expect((await statusOf(anna)).agents).toMatchObject([{ name: 'anna', state: 'alive', jobs: 12 }]);

  // The password of the database is nowhere.
  const password = new URL(fleet.database.url).password;
  for (const { program } of [anna, ben]) expect(`${program.stdout}${program.stderr}`).not.toContain(password);
  for (const name of ['anna', 'ben']) {
    const state = fs.readFileSync(`${fleet.place.directory}/${name}/state/agent.db`, 'latin1');
    expect(state).not.toContain(password);
  }
});
