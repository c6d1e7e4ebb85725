import fs from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { needs } from '../../support/needs.ts';
import { Terminal } from '../../support/service-terminal.ts';

const CTRL_C = '\u0003';

describe('on a terminal', needs('script'), () => {
  it.concurrent('tail shows colours and rewrites a progress bar in its place; Ctrl-C ends it', async (context) => {
    const place = Place.make(context);
    const { sandbox, job, task } = await submitQuietJob(place);
    place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false } });
    await place.run();
    const write = async (file: 'stdout' | 'stderr', text: string) => {
      fs.appendFileSync(task.files[file], text);
      await place.mirrored(job, file);
    };
    await write('stdout', '\u001b[32mgreen\u001b[0m\n');
    const terminal = new Terminal(['tail', job.jobId, '-f', '-c', place.configFile], { context, cwd: place.directory });
    await terminal.writes('\u001b[32mgreen\u001b[0m');
    await write('stderr', '10 %');
    await terminal.shows('10 %');
    await write('stderr', '\r50 %');
    await terminal.shows('50 %');
    await write('stderr', '\r100 %\n');
    await terminal.shows('100 %');
    // Each state takes the place of the one before: there is no new line between them.
    const states = terminal.text.slice(terminal.text.indexOf('10 %'), terminal.text.indexOf('100 %'));
    expect(states).toContain('50 %');
    expect(states).not.toContain('\n');
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(130);
    expect(stripVTControlCharacters(terminal.text)).toContain(`${task.taskId} stdout   | green`);
  });
});
