import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { type ConfigSearch, findConfig, loadConfig } from '../../src/config/load.ts';
import { JobtailError } from '../../src/errors.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, write } = configDirectory();

async function writeIn(directory: string, text = ''): Promise<string> {
  await mkdir(path(directory), { recursive: true });
  return await write(text, `${directory}/config.yaml`);
}

const find = (search: Partial<ConfigSearch>) =>
  findConfig({ explicit: undefined, env: {}, cwd: path(''), systemFile: path('none.yaml'), ...search });

describe('the configuration file', () => {
  it('is the one asked for, then that of the environment, of the user, of the system', async () => {
    const system = await write('', 'system.yaml');
    const own = await writeIn('xdg/jobtail');
    const env = { AGENT_CONFIG: 'from-env.yaml', XDG_CONFIG_HOME: path('xdg') };
    const search = { env, cwd: path('here'), systemFile: system };
    expect(find({ ...search, explicit: 'mine.yaml' })).toBe(path('here/mine.yaml'));
    expect(find({ ...search, explicit: '/abs/mine.yaml' })).toBe('/abs/mine.yaml');
    expect(find(search)).toBe(path('here/from-env.yaml'));
    expect(find({ ...search, env: { ...env, AGENT_CONFIG: '' } })).toBe(own);
    expect(find({ ...search, env: { XDG_CONFIG_HOME: path('other') } })).toBe(system);
  });

  it('of the user is below the home unless $XDG_CONFIG_HOME is an absolute path', async () => {
    const own = await writeIn('home/.config/jobtail');
    expect(find({ env: { HOME: path('home') } })).toBe(own);
    expect(find({ env: { HOME: path('home'), XDG_CONFIG_HOME: 'relative' } })).toBe(own);
    expect(() => find({ env: { HOME: 'relative' } })).toThrow(JobtailError);
  });

  it('is not passed over for being no file: loading it reports that', async () => {
    await mkdir(path('odd/jobtail/config.yaml'), { recursive: true });
    expect(find({ env: { XDG_CONFIG_HOME: path('odd') } })).toBe(path('odd/jobtail/config.yaml'));
  });

  it('is never that of the working directory; where there is no other, the message says what to type', async () => {
    const system = await write('', 'system.yaml');
    await writeIn('here');
    expect(find({ cwd: path('here'), systemFile: system })).toBe(system);
    const hint = (cwd: string) => {
      try {
        return find({ cwd: path(cwd) });
      } catch (error) {
        return (error as JobtailError).hint;
      }
    };
    expect(hint('here')).toBe(
      './config.yaml is used only by name: add -c config.yaml, or set $AGENT_CONFIG to its path',
    );
    expect(hint('')).toContain('run agent init');
  });

  it('is missed with a message that says where it was looked for', async () => {
    await writeFile(path('file'), '');
    const search = () => find({ cwd: path('file'), env: { HOME: path('') } });
    expect(search).toThrow(`nothing at ${path('.config/jobtail/config.yaml')}, ${path('none.yaml')}`);
    expect(search).toThrow(expect.objectContaining({ code: 'config', hint: expect.stringContaining('agent init') }));
  });
});

describe('a file that a job or its service may have written', () => {
  const refused = { code: 'config', message: expect.stringContaining('in a directory of job 501, whose files') };

  it.each(['mirror/501/results/503', 'mirror/501/live/502', '501/results'])(
    'in %s is refused by name',
    async (place) => {
      await expect(loadConfig(await writeIn(place, MINIMAL))).rejects.toMatchObject(refused);
    },
  );

  it('is refused by a link to it and from it, too', async () => {
    const file = await writeIn('mirror/501/results', MINIMAL);
    await symlink(file, path('linked.yaml'));
    await expect(loadConfig(path('linked.yaml'))).rejects.toMatchObject(refused);
    const outside = await writeIn('own', MINIMAL);
    await symlink(outside, path('mirror/501/results/link.yaml'));
    await expect(loadConfig(path('mirror/501/results/link.yaml'))).rejects.toMatchObject(refused);
  });

  it.each(['501', 'results/501', '501/result/x', 'a501/results', '501/logs'])('is none in %s', async (place) => {
    await writeFile(path('password'), 'secret', { mode: 0o600 });
    await expect(loadConfig(await writeIn(place, MINIMAL))).resolves.toMatchObject({
      file: path(`${place}/config.yaml`),
    });
  });
});
