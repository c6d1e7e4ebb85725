/** The configuration changes while the agent runs. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';

it.concurrent(
  'a changed file takes effect and is reported; an invalid one is refused and changes nothing',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const [first, second] = [await sandbox.submit({ tasks: [{}] }), await sandbox.submit({ tasks: [{}] })];
    const watch = [first, second].map(({ jobId, tasks }) => ({ job: jobId, tasks: tasks.map(({ taskId }) => taskId) }));
    const write = (text: string) => {
      for (const { tasks } of [first, second]) for (const { files } of tasks) fs.appendFileSync(files.stdout, text);
    };
    write('from the beginning\n');
    place.configure(sandbox, { watch: watch.slice(0, 1), poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.5 } });
    const agent = await place.run();
    await place.mirrored(first, 'stdout');

    // A second job, and another interval.
    place.configure(sandbox, { watch, poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.4 } });
    const reported = await agent.logs('configuration changed');
    expect(reported).toMatchObject({
      level: 'info',
      changes: [
        'poll.maxIntervalSeconds 0.5 -> 0.4',
        `watch job ${second.jobId} nothing -> {"tasks":["${watch[1]?.tasks[0]}"],"files":["stdout","stderr","log","progress"],"results":true,"settleAfterMs":null}`,
      ],
    });
    await place.mirrored(second, 'stdout');

    // Each way to be wrong is refused with its message, and both jobs are followed on.
    const refused = async (sections: Record<string, unknown>, reason: string) => {
      place.configure(sandbox, { watch, poll: { minIntervalSeconds: 0.1, maxIntervalSeconds: 0.4 }, ...sections });
      const said = await until(
        `the refusal of ${reason}`,
        () => agent.logged('reload refused, old configuration kept', { err: reason })[0],
      );
      expect(said).toMatchObject({ level: 'error', code: 'config' });
      write(`after the refusal of ${reason}\n`);
      await place.mirrored(first, 'stdout');
      await place.mirrored(second, 'stdout');
    };
    await refused({ poll: { minIntervalSeconds: 'soon' } }, 'poll.minIntervalSeconds: expected a number of seconds');
    await refused({ results: { enabled: true, often: true } }, 'results.often: unknown key');
    await refused({ state: { directory: 'elsewhere' } }, 'a change of state.directory needs a restart');
    const missing = path.join(place.directory, 'no.pem');
    await refused({ service: { tls: { caFile: missing } } }, `service.tls.caFile: ${missing}: there is no such file`);

    // The file goes away and comes back; the first job leaves it, and is brought to its end.
    fs.rmSync(place.configFile);
    write('while there is no file\n');
    await place.mirrored(first, 'stdout');
    place.configure(sandbox, { watch: watch.slice(1) });
    await agent.logs('configuration changed', { changes: `watch job ${first.jobId} {` });
    await agent.logs('complete pass ended', { jobId: first.jobId, state: 'ended' });
    expect((await place.status()).jobs).toMatchObject([{ jobId: second.jobId, state: 'watched', error: null }]);
    write('the second job only\n');
    await place.mirrored(second, 'stdout');
    expect(agent.end, 'it is still the same process').toBeUndefined();
  },
);

it.concurrent(
  'a file whose change no event tells of is found; SIGHUP reads it in any case',
  PATIENCE,
  async (context) => {
    const place = Place.make(context);
    const { sandbox, job, task } = await submitQuietJob(place);
    fs.appendFileSync(task.files.stdout, 'hello\n');
    // The directory is replaced as a whole: nothing happens in the old one, and the file has the same length and time.
    const versions = ['old', 'new'].map((name) => path.join(place.directory, name));
    const current = path.join(place.directory, 'current');
    for (const [index, version] of versions.entries()) {
      place.configure(sandbox, index === 0 ? {} : { watch: [requestOf(job)] });
      fs.mkdirSync(version);
      const file = path.join(version, 'config.yaml');
      fs.writeFileSync(file, fs.readFileSync(place.configFile, 'utf8').padEnd(4096));
      fs.utimesSync(file, 1_700_000_000, 1_700_000_000);
    }
    fs.symlinkSync(versions[0] ?? '', current);
    const agent = place.startAt(path.join(current, 'config.yaml'), ['run']);
    await agent.logs('agent ready', { jobs: 0 });

    fs.symlinkSync(versions[1] ?? '', `${current}.new`);
    fs.renameSync(`${current}.new`, current);
    await agent.logs('configuration changed', { changes: `watch job ${job.jobId} nothing -> ` });
    await place.mirrored(job, 'stdout');
    agent.signal('SIGHUP');
    await agent.logs('configuration unchanged, certificates and secrets read again');
  },
);
