import { chmod, chown, mkdir, symlink, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type ConfigSearch, findConfig } from '../../src/config/load.ts';
import { JobtailError } from '../../src/errors.ts';
import { configDirectory } from './files.ts';

const { path, write } = configDirectory();

/** The user who runs the tests may be root, which takes nothing from a working directory: files get an owner of their own. */
const isRoot = process.geteuid?.() === 0;
const USER = isRoot ? 4711 : (process.geteuid?.() ?? 0);

/** What is found, and what is said of what is ignored. */
function find(search: Partial<ConfigSearch>): { readonly file: string; readonly ignored: readonly string[] } {
  const ignored: string[] = [];
  const defaults = { explicit: undefined, env: {}, cwd: path(''), uid: USER };
  const file = findConfig({ ...defaults, ...search, onIgnored: (message) => ignored.push(message) });
  return { file, ignored };
}

type Case = readonly [what: string, owner: Parameters<typeof directoryOf>[1], reason: string];

/** A directory with a `config.yaml`, both of `uid` with these modes. */
async function directoryOf(name: string, { uid = USER, gid = USER, directoryMode = 0o755, fileMode = 0o644 } = {}) {
  await mkdir(path(name), { recursive: true });
  const file = await write('', `${name}/config.yaml`);
  await chmod(file, fileMode);
  await chmod(path(name), directoryMode);
  if (isRoot) for (const place of [path(name), file]) await chown(place, uid, gid);
  return path(name);
}

describe('the configuration file', () => {
  it('is the one asked for, then that of the environment, of the directory, of the system', async () => {
    const system = await write('', 'system.yaml');
    const env = { AGENT_CONFIG: 'from-env.yaml' };
    const cwd = await directoryOf('mine');
    expect(find({ explicit: 'mine.yaml', env, cwd, systemFile: system }).file).toBe(path('mine/mine.yaml'));
    expect(find({ explicit: '/abs/mine.yaml', env, cwd, systemFile: system }).file).toBe('/abs/mine.yaml');
    expect(find({ env, cwd, systemFile: system }).file).toBe(path('mine/from-env.yaml'));
    expect(find({ env: { AGENT_CONFIG: '' }, cwd, systemFile: system })).toEqual({
      file: path('mine/config.yaml'),
      ignored: [],
    });
    await mkdir(path('elsewhere'), { recursive: true });
    expect(find({ cwd: path('elsewhere'), systemFile: system })).toEqual({ file: system, ignored: [] });
    await mkdir(path('xdg/jobtail'), { recursive: true });
    const own = await write('', 'xdg/jobtail/config.yaml');
    if (isRoot) for (const place of [path('xdg/jobtail'), own]) await chown(place, USER, USER);
    const home = { XDG_CONFIG_HOME: path('xdg') };
    expect(find({ env: home, cwd: path('elsewhere'), systemFile: system })).toEqual({ file: own, ignored: [] });
    expect(find({ env: home, cwd, systemFile: system }).file).toBe(path('mine/config.yaml'));
    const foreign = find({ env: home, uid: USER + 1, cwd: path('elsewhere'), systemFile: system });
    expect(foreign).toMatchObject({ file: system, ignored: [expect.stringContaining('belongs to another user')] });
  });

  it('is not passed over for being no file: loading it reports that', async () => {
    await mkdir(path('odd/config.yaml'), { recursive: true });
    if (isRoot) for (const place of ['odd', 'odd/config.yaml']) await chown(path(place), USER, USER);
    expect(find({ cwd: path('odd'), systemFile: '/nowhere' }).file).toBe(path('odd/config.yaml'));
  });

  /** What only root can make for a test. */
  const BY_ROOT: readonly Case[] = [
    ['both belong to another user', { uid: 4712 }, 'belongs to another user (uid 4712)'],
    ['a shared group can write the directory', { directoryMode: 0o775, gid: 100 }, 'other users can write'],
  ];
  it.each<Case>([
    ['anyone can write the file', { fileMode: 0o666 }, 'other users can write'],
    ['anyone can write the directory', { directoryMode: 0o777 }, 'other users can write'],
    ...(isRoot ? BY_ROOT : []),
  ])('of the working directory is ignored where %s', async (_what, owner, reason) => {
    const system = await write('', 'system.yaml');
    const { file, ignored } = find({ cwd: await directoryOf('foreign', owner), systemFile: system });
    expect(file).toBe(system);
    expect(ignored).toEqual([expect.stringContaining(reason)]);
    expect(ignored[0]).toContain('name it with -c');
  });

  it('of the working directory is used where only the own group of the user can write it', async () => {
    const cwd = await directoryOf('private-group', { directoryMode: 0o775, fileMode: 0o664 });
    if (isRoot) expect(find({ cwd })).toEqual({ file: path('private-group/config.yaml'), ignored: [] });
  });

  it('of the working directory is ignored where it is a link into a directory of another user', async () => {
    await directoryOf('theirs', { directoryMode: 0o777 });
    await mkdir(path('links'), { recursive: true });
    await symlink(path('theirs/config.yaml'), path('links/config.yaml'));
    if (isRoot) await chown(path('links'), USER, USER);
    const system = await write('', 'system.yaml');
    expect(find({ cwd: path('links'), systemFile: system }).file).toBe(system);
  });

  it('of the working directory is never that of root', async () => {
    const system = await write('', 'system.yaml');
    const { file, ignored } = find({
      cwd: await directoryOf('of-root', { uid: 0, gid: 0 }),
      systemFile: system,
      uid: 0,
    });
    expect(file).toBe(system);
    expect(ignored).toEqual([expect.stringContaining('root takes no configuration')]);
  });

  it('is missed with a message that says where it was looked for and what to do', async () => {
    await writeFile(path('file'), '');
    const search = () => find({ cwd: path('file'), systemFile: path('no-system.yaml') });
    expect(search).toThrow(JobtailError);
    expect(search).toThrow(
      expect.objectContaining({
        code: 'config',
        message: expect.stringContaining(`${resolve(path('file'), 'config.yaml')}, ${path('no-system.yaml')}`),
        hint: expect.stringContaining('agent init'),
      }),
    );
  });
});
