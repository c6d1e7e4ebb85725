/** What stands on the screen of a terminal while a command waits, and when it has ended. */
import { describe, expect, it } from 'vitest';
import { needs } from '../../support/needs.ts';
import { ResultsE2e } from '../../support/results-place.ts';
import { Terminal } from '../../support/service-terminal.ts';

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
});
