/** What every direct transfer does, over each implementation. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, type TestOptions } from 'vitest';
import type { DirectRequest } from '../../src/agent/ports/transfer.ts';
import { shareTransfer } from '../../src/direct/share.ts';
import { JobtailError } from '../../src/errors.ts';
import { needs } from '../support/needs.ts';
import { SshPlace } from './ssh-place.ts';
import { type NamedFile, SHARED } from './transfers.ts';

type Fetch = (names: readonly string[], more?: Partial<DirectRequest<NamedFile>>) => Promise<void>;

async function share(place: SshPlace): Promise<Fetch> {
  const transfer = shareTransfer({ roots: { '/scratch': path.join(place.directory, 'cluster') }, guarded: [] });
  return (...of) => place.fetch(transfer, SHARED, ...of);
}

/** rsync with a key that permits nothing else; a script runs the command in the place of SSH. */
async function rsync(place: SshPlace): Promise<Fetch> {
  place.hostIs(`exec ${place.onlyRsync()}`);
  const method = await place.lend();
  return (...of) => place.fetch(place.transfer(), method, ...of);
}

const IMPLEMENTATIONS: [name: string, make: typeof share, options: TestOptions][] = [
  ['a mounted share', share, {}],
  ['rsync', rsync, needs('rsync')],
];

for (const [name, make, options] of IMPLEMENTATIONS) {
  describe(name, options, () => {
    const setUp = async () => {
      const place = new SshPlace();
      return { place, fetch: await make(place) };
    };

    it('hands over whole files under their own paths, empty ones too, and passes over what is not there', async () => {
      const { place, fetch } = await setUp();
      const large = Buffer.alloc(3_000_000, 'all work and no play ');
      place.put('11/large.dat', large);
      place.put('11/sub/dir/small', 'small');
      place.put('11/empty', '');
      place.put('11/not-asked-for', 'x');
      await fetch(['11/large.dat', '11/missing', '11/sub/dir/small', '11/empty']);
      expect([...place.came.keys()].sort()).toEqual(['11/empty', '11/large.dat', '11/sub/dir/small']);
      expect(place.came.get('11/large.dat')?.equals(large)).toBe(true);
      expect(place.came.get('11/sub/dir/small')?.toString()).toBe('small');
      expect(place.came.get('11/empty')).toHaveLength(0);
      expect(place.irregular.size).toBe(0);
      expect(place.reached).toBe(1);
      expect(place.progress.at(-1)).toBe(large.length + 5);
      expect(place.files(place.arrival)).toEqual([]);
    });

    it('brings odd names, and never another file', async () => {
      const { place, fetch } = await setUp();
      const odd = [
        ...['a b', 'ü', '-rf', '$(id)', "it's", '*', 'new\nline', ';x'],
        ...['"q"', '?', '[a]', '&', '#a', 'a,b', '{a,b}', 'a:b', '~', 'tab\t', '\u202Ertl', '%41', '\\#041', ' '],
      ];
      const names = odd.map((name) => `11/${name}`);
      for (const name of names) place.put(name, `content of ${name}`);
      await fetch(names);
      for (const [came, content] of place.came) expect(content.toString()).toBe(`content of ${came}`);
      expect([...place.came.keys()].sort()).toEqual([...names].sort());
      expect(place.files(place.results).sort()).toEqual([...place.came.keys()].sort());
    });

    it('says which files are larger than allowed', async () => {
      const { place, fetch } = await setUp();
      place.put('11/f\u00FC\nr', Buffer.alloc(100_001));
      place.put('11/large', Buffer.alloc(100_001));
      place.put('11/small', Buffer.alloc(100_000));
      await fetch(['11/large', '11/small', '11/f\u00FC\nr'], { maxFileBytes: 100_000 });
      expect([...place.came.keys()]).toEqual(['11/small']);
      expect(place.tooLarge).toContain('11/large');
      expect(place.tooLarge).toHaveLength(2);
    });

    it('brings no directory, no pipe and no link as such', async () => {
      const { place, fetch } = await setUp();
      place.put('11/dir/x', 'x');
      place.put('11/good', 'good');
      fs.symlinkSync('good', path.join(place.cluster, '11', 'link'));
      fs.symlinkSync('/etc/hostname', path.join(place.cluster, '11', 'out'));
      fs.symlinkSync('nowhere', path.join(place.cluster, '11', 'dead'));
      fs.symlinkSync('dir', path.join(place.cluster, '11', 'to\ndir'));
      execFileSync('mkfifo', [path.join(place.cluster, '11', 'pipe')]);
      await fetch(['11/dir', '11/link', '11/pipe', '11/dead', '11/to\ndir', '11/good']);
      // What the service is not to be asked for; another host may know less of it.
      const links = [
        ['11/dead', 'a link to a missing file'],
        ['11/to\ndir', 'a link to a directory'],
      ];
      expect(place.irregular.get('11/pipe')).toBe('a named pipe');
      expect([...place.irregular]).toEqual(expect.arrayContaining(links));
      expect(['11/link', '11/good'].filter((one) => place.irregular.has(one))).toEqual([]);
      expect(place.came.get('11/good')?.toString()).toBe('good');
      expect(place.came.has('11/dir')).toBe(false);
      // What a link leads to is the content of a result, where it can be had.
      if (place.came.has('11/link')) expect(place.came.get('11/link')?.toString()).toBe('good');
    });

    it('ends with what is thrown when it reports how far it is, and at once when it is stopped', async () => {
      const { place, fetch } = await setUp();
      // rsync would find bytes that repeat in what came before the stop.
      place.put('11/large', randomBytes(8_000_000));
      const stop = new AbortController();
      const locked = () => {
        throw new JobtailError('store', 'the state is locked');
      };
      for (const [onBytes, code] of [
        [locked, 'store'],
        [() => stop.abort(), 'aborted'],
      ] as const) {
        const fetched = fetch(['11/large'], { signal: stop.signal, bytesPerSecond: 1_000_000, onBytes });
        await expect(fetched).rejects.toMatchObject({ code });
        expect(place.came.size).toBe(0);
      }
    });

    it('refuses a link in the place of its own directory', async () => {
      const { place, fetch } = await setUp();
      place.put('11/a', 'a');
      const outside = path.join(place.directory, 'outside');
      fs.mkdirSync(outside);
      fs.symlinkSync(outside, place.arrival);
      await expect(fetch(['11/a'])).rejects.toMatchObject({ code: 'local-io' });
      expect(fs.readdirSync(outside)).toEqual([]);
    });
  });
}
