// How dist/ is made: the program and the packages it needs in few files, for to find, read and compile hundreds of them
// is most of a start; and what was tested is what is installed. Types are left to tsc.
import { stripVTControlCharacters } from 'node:util';
import { defineConfig } from 'rolldown';
import { pageAssets } from './scripts/page-assets.mjs';
import { smallerPackages } from './scripts/smaller-packages.mjs';
import { thirdPartyLicences } from './scripts/third-party-licences.mjs';

/** An import that leads nowhere, a cycle, a name that is not there: nothing is built. */
function onLog(level, { code, message }) {
  if (level === 'warn') throw new Error(`${code}: ${stripVTControlCharacters(message)}`);
}

const program = defineConfig({
  input: {
    'cli/main': 'src/cli/main.ts',
    // The tasks of the demo run it, as a program of its own.
    'simulator/demo/demo-task': 'simulator/demo/demo-task.ts',
    // A thread of its own within the agent.
    'daemon/view-worker': 'src/daemon/view-worker.ts',
    // The same for the sockets.
    'api/worker': 'src/api/worker.ts',
    // The thread for the expressions of people.
    'search/expression-worker': 'src/search/expression-worker.ts',
    // Threads of `agent grep`.
    'search/worker': 'src/search/worker.ts',
  },
  platform: 'node',
  // A native module (the other one, unix-dgram, is loaded by createRequire), one that is not installed (`debug` asks), and
  // one that need not be.
  external: [/\.node$/, 'supports-color', 'pg'],
  transform: { target: 'node20.19' },
  // What a package does when it is loaded, it goes on doing.
  treeshake: { moduleSideEffects: [{ test: /./, sideEffects: true }] },
  checks: { circularDependency: true },
  onLog,
  output: {
    dir: 'dist',
    cleanDir: true,
    entryFileNames: '[name].js',
    // With a hash: an agent that still runs after an upgrade must not load parts of another version.
    chunkFileNames: 'chunks/[name]-[hash].js',
    // Each file costs a millisecond of the start: one for all commands, one for each that reads the configuration
    // or the state.
    codeSplitting: {
      groups: [
        {
          name: 'basics',
          test: /src\/(?:[^/]*|system\/(?:no-debugger|package-file|regular-files|working-directory))\.ts$/,
        },
        { name: 'start', test: /src\/cli\/(?:execute|process)\.ts$/ },
        { name: 'configuration', test: /src\/cli\/configuration\.ts$/ },
        { name: 'state', test: /src\/cli\/followed-jobs\.ts$/ },
      ],
    },
    comments: false,
    keepNames: true,
    sourcemap: true,
    sourcemapExcludeSources: true,
  },
  plugins: [smallerPackages, thirdPartyLicences('THIRD-PARTY-LICENSES')],
});

/** What runs in the browser: one script, whose parts all load at once. */
const page = defineConfig({
  input: { page: 'src/view/page/main.tsx' },
  platform: 'browser',
  transform: { target: 'es2022' },
  checks: { circularDependency: true },
  onLog,
  output: {
    dir: 'dist',
    cleanDir: false,
    entryFileNames: 'view/page/assets/[name]-[hash].js',
    minify: true,
  },
  plugins: [
    pageAssets({
      document: 'src/view/page/index.html',
      styles: [
        'node_modules/uplot/dist/uPlot.min.css',
        ...['base', 'job', 'pane', 'pages'].map((name) => `src/view/page/styles/${name}.css`),
      ],
      icon: 'src/view/page/icon.svg',
      directory: 'view/page',
    }),
    thirdPartyLicences('view/page/THIRD-PARTY-LICENSES'),
  ],
});

export default [program, page];
