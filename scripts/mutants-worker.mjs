// A process of `npm run test:mutants`: one vitest that runs tests again and again, each time with other sources, which it
// has from memory. Gets `{ tests, sources }`, says `{ ended }` of each file, and answers with the first that failed.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { BaseSequencer, createVitest } from 'vitest/node';
import builds from '../rolldown.config.mjs';

const root = path.dirname(import.meta.dirname);
const own = path.join(process.env.JOBTAIL_MUTANTS, `${process.pid}`);
process.on('disconnect', () => process.exit());
process.once('exit', () => rmSync(own, { recursive: true, force: true }));

// A package of its own, whose dist/ has the mistake: programs and threads run it.
mkdirSync(own);
for (const name of readdirSync(root)) if (name !== 'dist') symlinkSync(path.join(root, name), path.join(own, name));
cpSync(path.join(root, 'dist'), path.join(own, 'dist'), { recursive: true });
process.env.JOBTAIL_PACKAGE = own;
const finder = path.join(root, 'src/system/package-file.ts');
const found = readFileSync(finder, 'utf8').replace('import.meta.dirname', `'${own}'`);

/** Shortest first, as they are given. */
class AsGiven extends BaseSequencer {
  async sort(files) {
    return files;
  }
}
const reporter = {
  onTestModuleEnd: (module) => {
    if (hasFailed(module)) void vitest.cancelCurrentRun('test-failure');
    else process.send({ ended: path.relative(root, module.moduleId) });
  },
};
// Not `bail`: where tests of the file are concurrent, it loses the failure.
const options = { watch: false, reporters: [reporter], maxWorkers: 1, fileParallelism: false };
const vitest = await createVitest('test', options);
vitest.config.sequence.sequencer = AsGiven;
const all = await vitest.globTestSpecifications();
let changed = {};
globalThis.jobtailSources = (file) => changed[file] ?? (file === finder ? found : undefined);

process.on('message', async ({ tests, sources }) => {
  const before = Object.keys(changed);
  changed = Object.fromEntries(Object.entries(sources).map(([file, text]) => [path.join(root, file), text]));
  for (const file of new Set([...before, ...Object.keys(changed)])) vitest.invalidateFile(file);
  await build();
  // Results of an earlier run.
  vitest.state.filesMap.clear();
  vitest.state.idMap.clear();
  const specifications = tests.map((file) => {
    const { project, moduleId } = all.find((each) => each.moduleId === path.join(root, file));
    return project.createSpecification(moduleId);
  });
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const [unhandled] = unhandledErrors;
  const failed = testModules.find(hasFailed)?.moduleId ?? unhandled?.VITEST_TEST_PATH;
  const isOk = testModules.length > 0 && unhandled === undefined && failed === undefined;
  process.send({ isOk, failed: failed && path.relative(root, failed) });
});

/** One that ended the process has no result. */
function hasFailed(module) {
  return !['passed', 'skipped'].includes(module.state());
}

async function build() {
  const planted = { name: 'mutant', load: (id) => changed[id] };
  const [{ output, plugins, ...input }] = builds;
  const bundle = await rolldown({ ...input, plugins: [planted, ...plugins] });
  await bundle.write({ ...output, dir: path.join(own, 'dist'), cleanDir: false });
  await bundle.close();
}

process.send(all.map(({ moduleId }) => path.relative(root, moduleId)));
