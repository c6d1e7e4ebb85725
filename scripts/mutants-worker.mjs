// A process of `npm run test:mutants`: one vitest that runs tests again and again, each time with other sources, which it
// has from memory. Gets `{ tests, sources, isCounting }` and answers with what came of it.
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

process.on('message', async ({ tests, sources, isCounting }) => {
  const before = Object.keys(changed);
  changed = Object.fromEntries(Object.entries(sources).map(([file, text]) => [path.join(root, file), text]));
  for (const file of new Set([...before, ...Object.keys(changed)])) vitest.invalidateFile(file);
  // For processes of their own, see typescript.mjs.
  process.env.JOBTAIL_MUTANT = `${own}.sources`;
  writeFileSync(process.env.JOBTAIL_MUTANT, JSON.stringify(changed));
  if (isCounting) process.env.JOBTAIL_PLACES = `${own}.places`;
  else delete process.env.JOBTAIL_PLACES;
  // What failed in an earlier run counts for --bail.
  vitest.state.filesMap.clear();
  vitest.state.idMap.clear();
  const specifications = tests.map(({ file, ids }) => {
    const { project, moduleId } = all.find((each) => each.moduleId === path.join(root, file));
    return project.createSpecification(moduleId, ids === undefined ? {} : { testIds: ids });
  });
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  process.send(outcomeOf(testModules, unhandledErrors));
});
process.send(all.map(({ moduleId }) => path.relative(root, moduleId)));

function outcomeOf(modules, unhandledErrors) {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const isOk = modules.length > 0 && unhandledErrors.length === 0 && modules.every((module) => module.ok());
  const failed = tests.filter((test) => test.result().state === 'failed').map(({ fullName }) => fullName);
  const errors = [...unhandledErrors, ...modules.flatMap((module) => module.errors())].map(({ message }) => message);
  const met = tests.map((test) => {
    const { places = [], atImport = [] } = test.meta();
    return { id: test.id, ms: test.diagnostic()?.duration ?? 0, places, atImport };
  });
  return { isOk, tests: met, why: [...failed, ...errors][0] };
}
