/** What `agent check` reports of the view. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { checkView } from '../../src/cli/check/machine.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { ownState } from './own-state.ts';

it('a Unix socket of the view below a missing directory is a warning, until the directory is there', async () => {
  const { config } = await ownState();
  const directory = path.join(temporaryDirectory(), 'run');
  const listen = { path: path.join(directory, 'view.sock') };
  const check = () => checkView({ ...config, view: { listen, tokenFile: null, publicUrl: null } });
  const marks = async () => (await check()).map(({ mark, text }) => `${mark} ${text}`);
  expect(await marks()).toEqual([expect.stringMatching(/^ok /), `warning there is no directory ${directory}`]);
  fs.mkdirSync(directory);
  expect(await marks()).toEqual([expect.stringMatching(/^ok /)]);
});
