// A process of `npm run test:mutants`: one vitest that runs tests again and again, each time with other sources, which it
// has from memory. Gets `{ tests, sources }` and answers with the first file that failed.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { BaseSequencer, createVitest } from 'vitest/node';

const root = path.dirname(import.meta.dirname);
const own = path.join(process.env.JOBTAIL_MUTANTS, `${process.pid}`);
process.on('disconnect', () => process.exit());

/** Shortest first, as they are given. */
class AsGiven extends BaseSequencer {
  async sort(files) {
    return files;
  }
}
const options = { watch: false, bail: 1, reporters: [{}], maxWorkers: 1, fileParallelism: false };
const vitest = await createVitest('test', options);
vitest.config.sequence.sequencer = AsGiven;
const all = await vitest.globTestSpecifications();
let changed = {};
globalThis.jobtailSources = (file) => changed[file];

process.on('message', async ({ tests, sources }) => {
  const before = Object.keys(changed);
  changed = Object.fromEntries(Object.entries(sources).map(([file, text]) => [path.join(root, file), text]));
  for (const file of new Set([...before, ...Object.keys(changed)])) vitest.invalidateFile(file);
  // For processes of their own, see typescript.mjs.
  process.env.JOBTAIL_MUTANT = `${own}.sources`;
  writeFileSync(process.env.JOBTAIL_MUTANT, JSON.stringify(changed));
  // What failed in an earlier run counts for --bail.
  vitest.state.filesMap.clear();
  vitest.state.idMap.clear();
  const specifications = tests.map((file) => {
    const { project, moduleId } = all.find((each) => each.moduleId === path.join(root, file));
    return project.createSpecification(moduleId);
  });
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const failed = testModules.find((module) => !module.ok() && module.state() !== 'skipped');
  const isOk = testModules.length > 0 && unhandledErrors.length === 0 && failed === undefined;
  process.send({ isOk, failed: failed && path.relative(root, failed.moduleId) });
});
process.send(all.map(({ moduleId }) => path.relative(root, moduleId)));
