import fs from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { needs } from '../../support/needs.ts';
import { Terminal } from '../../support/service-terminal.ts';

const CTRL_C = '\u0003';

/** A job of one task without a process, watched, and an agent that follows it. */
async function follow(place: Place) {
  const { sandbox, job, task } = await submitQuietJob(place);
  place.configure(sandbox);
  const agent = await place.run();
  expect(await place.agent('watch', job.jobId, '--task', task.taskId, '--no-results')).toMatchObject({ code: 0 });
  const write = async (file: 'stdout' | 'stderr', text: string | Buffer) => {
    fs.appendFileSync(task.files[file], text);
    await place.mirrored(job, file);
  };
  return { sandbox, job, task, agent, write };
}

describe('agent tail', () => {
  it.concurrent('follows until the job is ended, and announces a new generation', async (context) => {
    const place = Place.make(context);
    const { job, task, write } = await follow(place);
    await write('stdout', 'before\n');
    const tail = place.start(['tail', job.jobId, '-f', '--file', 'stdout', '--no-prefix']);
    const shown = (text: string) => until(`tail to show ${text}`, () => tail.stdout.includes(text));
    await shown('before\n');
    await write('stdout', 'more\nunfinished');
    await shown('more\n');
    await shown('unfinished\n');

    fs.writeFileSync(task.files.stdout, 'anew\n');
    await shown('the new content follows');
    await shown('anew\n');
    await place.mirrored(job, 'stdout');
    fs.appendFileSync(task.files.stdout, 'the last line\n');
    expect(await place.agent('unwatch', job.jobId)).toMatchObject({ code: 0 });
    const end = await tail.ended;
    expect(end).toMatchObject({ code: 0, stderr: `job ${job.jobId} is unwatched: no more lines\n` });
    expect(end.stdout.split('\n')).toEqual([
      'before',
      'more',
      'unfinished',
      '--- the remote file was truncated or rewritten; the new content follows ---',
      'anew',
      'the last line',
      '',
    ]);
  });
});

describe('on a terminal', needs('script'), () => {
  it.concurrent('tail shows colours and rewrites a progress bar in its place; Ctrl-C ends it', async (context) => {
    const place = Place.make(context);
    const { job, task, write } = await follow(place);
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

    const plain = new Terminal(['tail', job.jobId, '-c', place.configFile], {
      context,
      cwd: place.directory,
      env: { NO_COLOR: '1' },
    });
    expect(await plain.ended).toBe(0);
    expect(plain.text).not.toContain('\u001b[');
    expect(plain.text).toContain('| green');
  });

  it.concurrent('watch --foreground shows lines, and below them how it stands', async (context) => {
    const place = Place.make(context);
    const { sandbox, job, task } = await submitQuietJob(place);
    place.configure(sandbox);
    fs.writeFileSync(task.files.stdout, 'hello\n');
    const args = ['watch', job.jobId, '--task', task.taskId, '--foreground', '-c', place.configFile];
    const terminal = new Terminal(args, { context, cwd: place.directory, columns: 120 });
    await terminal.shows(/stdout {3}\|.*hello/);
    await terminal.shows(/job \d+: 4 live files, 6 B, last growth \d+ s ago/);
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(130);
    expect(terminal.text).toContain(`job ${job.jobId} is watched; agent watch ${job.jobId} --foreground goes on`);
  });
});
