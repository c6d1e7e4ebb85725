import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ConfigSearch, findConfig, loadConfig } from '../../src/config/load.ts';
import { errorOf } from '../support/errors.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, write } = configDirectory();

async function writeIn(directory: string, text = ''): Promise<string> {
  await mkdir(path(directory), { recursive: true });
  return await write(text, `${directory}/config.yaml`);
}

const [OWN, OF_HOME] = ['xdg/jobtail/config.yaml', 'home/.config/jobtail/config.yaml'];

describe('the configuration file', () => {
  beforeAll(async () => {
    for (const directory of [OWN, OF_HOME, 'here/config.yaml']) await writeIn(dirname(directory));
    // It is not passed over for being no file: loading it reports that.
    await mkdir(path('odd/jobtail/config.yaml'), { recursive: true });
    await write('', 'system.yaml');
  });

  /** `~` is the directory of the test. */
  const find = ({ env = {}, ...search }: Partial<ConfigSearch>) => {
    const variables = Object.entries(env).map(([name, value]) => [name, value?.replace('~', path(''))]);
    const rest = { explicit: undefined, cwd: 'here', systemFile: 'system.yaml', ...search };
    const at = { cwd: path(rest.cwd), systemFile: path(rest.systemFile) };
    return findConfig({ ...rest, env: Object.fromEntries(variables), ...at }).replace(path(''), '');
  };
  const ALL = { AGENT_CONFIG: 'from-env.yaml', XDG_CONFIG_HOME: '~/xdg', HOME: '~/home' };

  it.each<[Partial<ConfigSearch>, found: string]>([
    [{ explicit: 'mine.yaml', env: ALL }, '/here/mine.yaml'],
    [{ explicit: '/abs/mine.yaml', env: ALL }, '/abs/mine.yaml'],
    [{ env: ALL }, '/here/from-env.yaml'],
    [{ env: { ...ALL, AGENT_CONFIG: '' } }, `/${OWN}`],
    [{ env: { HOME: '~/home' } }, `/${OF_HOME}`],
    [{ env: { HOME: '~/home', XDG_CONFIG_HOME: 'relative' } }, `/${OF_HOME}`],
    [{ env: { HOME: 'home', XDG_CONFIG_HOME: '~/other' } }, '/system.yaml'],
    [{ env: { XDG_CONFIG_HOME: '~/odd' } }, '/odd/jobtail/config.yaml'],
    // Never that of the working directory.
    [{}, '/system.yaml'],
  ])('is the one asked for, then that of the environment, of the user, of the system: %j is %s', (search, found) => {
    expect(find(search)).toBe(found);
  });

  it('is missed with a message that says where it was looked for, and what to type', async () => {
    await writeFile(path('file'), '');
    const missing = (cwd: string) => errorOf(() => find({ cwd, env: { HOME: '~' }, systemFile: 'none.yaml' }));
    const { code, message, hint } = missing('file');
    expect([code, message]).toEqual(['config', expect.stringContaining(`nothing at ${path('.config/jobtail/')}`)]);
    expect(message).toContain(`config.yaml, ${path('none.yaml')}`);
    expect(hint).toContain('run agent init');
    const byName = './config.yaml is used only by name: add -c config.yaml, or set $AGENT_CONFIG to its path';
    expect(missing('here').hint).toBe(byName);
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
