import { mkdir, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findConfig } from '../../src/config/find.ts';
import { JobtailError } from '../../src/errors.ts';
import { configDirectory } from './files.ts';

const { path, write } = configDirectory();

describe('the configuration file', () => {
  it('is the one asked for, then that of the environment, of the directory, of the system', async () => {
    await write('', 'config.yaml');
    const system = await write('', 'system.yaml');
    const env = { AGENT_CONFIG: 'from-env.yaml' };
    expect(findConfig('mine.yaml', env, path(''), system)).toBe(path('mine.yaml'));
    expect(findConfig('/abs/mine.yaml', env, path(''), system)).toBe('/abs/mine.yaml');
    expect(findConfig(undefined, env, path(''), system)).toBe(path('from-env.yaml'));
    expect(findConfig(undefined, { AGENT_CONFIG: '' }, path(''), system)).toBe(path('config.yaml'));
    await mkdir(path('elsewhere'), { recursive: true });
    expect(findConfig(undefined, {}, path('elsewhere'), system)).toBe(system);
  });

  it('is not passed over for being no file: loading it will tell', async () => {
    await mkdir(path('odd/config.yaml'), { recursive: true });
    expect(findConfig(undefined, {}, path('odd'), '/nowhere')).toBe(path('odd/config.yaml'));
  });

  it('is missed with a message that says where it was looked for and what to do', async () => {
    await writeFile(path('file'), '');
    const search = () => findConfig(undefined, {}, path('file'), path('no-system.yaml'));
    expect(search).toThrow(JobtailError);
    expect(search).toThrow(
      expect.objectContaining({
        code: 'config',
        message: expect.stringContaining(`${resolve(path('file'), 'config.yaml')} or ${path('no-system.yaml')}`),
        hint: expect.stringContaining('config.example.yaml'),
      }),
    );
  });
});
