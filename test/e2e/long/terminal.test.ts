/** What stands on the screen of a terminal while a command waits, and when it has ended. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { needs } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';
import { Terminal } from '../../support/service-terminal.ts';

const CTRL_C = '\u0003';
/** More than are downloaded at a time. */
const FILES = 40;

describe('on a terminal', needs('script'), () => {
  it.concurrent('sync shows a bar that changes in its place and is gone at the end', async (context) => {
    const e2e = await ResultsE2e.start(context, { results: { transfer: 'service' } });
    const { place } = e2e;
    for (let file = 0; file < FILES; file++) e2e.put(`${file}.dat`, 'x'.repeat(1_000));
    await place.watch('501');
    e2e.sandbox.faults.add({ kind: 'delay', ms: 1_000, operation: 'DownloadFileFromCluster' });
    const terminal = new Terminal(['sync', '501', '-c', place.configFile], {
      context,
      cwd: place.directory,
      columns: 90,
    });
    await terminal.shows(new RegExp(`^results \\[[█░]{24}\\] \\d+ of ${FILES} files, `, 'm'));
    const bars = terminal.screen.split('\n').filter((line) => line.startsWith('results ['));
    expect(bars).toHaveLength(1);
    expect(await terminal.ended).toBe(0);
    const { screen } = terminal;
    expect(screen).not.toMatch(/[█░]/);
    expect(screen).toContain(`${FILES} results checked, ${FILES} new or changed`);
    // More than one state was drawn.
    expect(new Set(terminal.text.match(/results \[[█░]+\] \d+/g)).size).toBeGreaterThan(1);
  });

  it.concurrent('view shows one link and how it ends, and neither its token nor a secret', async (context) => {
    const place = Place.make(context);
    const { sandbox } = await submitQuietJob(place);
    place.configure(sandbox);
    const agent = await place.run();
    agent.signal('SIGTERM');
    await agent.ended;
    const terminal = new Terminal(['view', '--no-open', '-c', place.configFile], { context, cwd: place.directory });
    await terminal.shows('served until Ctrl-C; no agent is running');
    const { screen } = terminal;
    expect(screen.match(/http:\/\/\S+/g)).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\?ticket=\S+$/)]);
    const token = fs.readFileSync(path.join(place.state, 'view-token'), 'utf8').trim();
    const secrets = fs.readdirSync(place.directory).filter((name) => /password|secret|session/.test(name));
    const read = (name: string) => fs.readFileSync(path.join(place.directory, name), 'utf8').trim();
    const isFile = (name: string) => fs.statSync(path.join(place.directory, name)).isFile();
    for (const secret of [token, ...secrets.filter(isFile).map(read)]) expect(terminal.text).not.toContain(secret);
    const [link = ''] = screen.match(/http:\/\/\S+/) ?? [];
    await until('an answer', async () => (await fetch(link, { redirect: 'manual' })).status < 500);
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(0);
  });
});
