// `agent demo --fleet` of a checkout: `npm run demo:fleet`
process.argv.splice(1, 1, 'dist/cli/main.js', 'demo', '--fleet');
await import('../dist/cli/main.js');
