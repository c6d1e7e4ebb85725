/** The configuration changes while the agent runs. */
import fs from 'node:fs';
import path from 'node:path';
import { it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';

it.concurrent('a file whose change no event tells of is found; SIGHUP reads it in any case', async (context) => {
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
  await agent.logs('configuration changed', { changes: 'watch' });
  await place.mirrored(job, 'stdout');
  agent.signal('SIGHUP');
  await agent.logs('configuration unchanged, certificates and secrets read again');
});
