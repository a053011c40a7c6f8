import jsdoc from 'eslint-plugin-jsdoc';
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const indexingOnly = {
  selector: 'TSNonNullExpression:not(:has(> MemberExpression[computed=true]))',
  message: '`!` is for `array[index]!` in arithmetic only; elsewhere handle the missing value.',
};

const exported = [
  'ClassDeclaration',
  'FunctionDeclaration',
  'TSInterfaceDeclaration',
  'TSTypeAliasDeclaration',
  'VariableDeclaration',
].map((kind) => `ExportNamedDeclaration > ${kind}`);

/** A file says in its first comment what it owns. */
const ownsSentence = {
  meta: { type: 'suggestion', schema: [] },
  create: (context) => ({
    Program(node) {
      const first = context.sourceCode.getAllComments().find((comment) => comment.type === 'Block');
      const before = first === undefined ? '' : context.sourceCode.text.slice(0, first.range[0]);
      if (first === undefined || !/^\*[\s*]+Owns\b/.test(first.value) || !/^(#!.*\n)?\s*$/.test(before)) {
        context.report({ node, message: 'Start the file with one sentence: /** Owns … */' });
      }
    },
  }),
};

export default defineConfig([
  globalIgnores(['dist/', 'coverage/', '.cache/', 'models/', 'src/kernels/onnx/*_pb.ts']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { trivec: { rules: { 'owns-sentence': ownsSentence } } },
    rules: {
      eqeqeq: 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // `for (;;)` and `while (true)` are how a loop that ends by return is written.
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      // What was caught, or was the reason of a rejection, is thrown on as it came.
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true, allowRethrowing: true }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allowThrowingUnknown: true }],
      // Replaced by `indexingOnly`: noUncheckedIndexedAccess makes `values[i]!` the plain way to read a typed array.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // An async function without `await` keeps the promise of its interface: it rejects, it never throws.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    files: ['src/**/*.ts', 'console/src/**/*.ts', 'scripts/**/*.{ts,js}', 'test/support/**/*.ts'],
    rules: { 'trivec/owns-sentence': 'error' },
  },
  {
    files: ['src/**/*.ts', 'console/src/**/*.ts'],
    plugins: { jsdoc },
    settings: { jsdoc: { mode: 'typescript' } },
    rules: {
      'no-console': 'error',
      'no-restricted-syntax': ['error', indexingOnly],
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Settings come from config, handed down in slices.' },
      ],
      'no-restricted-imports': [
        'error',
        { paths: ['process', 'node:process'].map((name) => ({ name, message: 'Use the global `process`.' })) },
      ],
      'jsdoc/require-jsdoc': [
        'error',
        {
          publicOnly: true,
          enableFixer: false,
          checkConstructors: false,
          require: { FunctionDeclaration: false },
          contexts: exported,
        },
      ],
      'jsdoc/require-description': ['error', { contexts: ['ExportNamedDeclaration'] }],
      'jsdoc/check-tag-names': ['error', { definedTags: ['shape', 'unit', 'source'] }],
      'jsdoc/check-param-names': 'error',
      'jsdoc/no-types': 'error',
      'jsdoc/empty-tags': 'error',
    },
  },
  { files: ['src/cli/**/*.ts'], rules: { 'no-console': 'off' } },
  {
    files: ['console/src/**/*.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        ...['innerHTML', 'outerHTML', 'insertAdjacentHTML'].map((property) => ({
          property,
          message: 'Text of users is never markup: use `element`.',
        })),
      ],
    },
  },
  // The client has no log of its own: what nobody listens to goes where its caller's messages go.
  { files: ['src/client/client.ts'], rules: { 'no-console': ['error', { allow: ['warn'] }] } },
  // The executor turns the engine's telemetry off before it loads it.
  {
    files: ['src/config.ts', 'src/config/**/*.ts', 'src/executor/session-options.ts'],
    rules: { 'no-restricted-properties': 'off' },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-invalid-void-type': 'off',
      '@typescript-eslint/no-misused-spread': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      '@typescript-eslint/unbound-method': 'off',
      // A suite is a list of rules: it may be longer than a room of the house.
      'max-lines': ['error', { max: 500, skipBlankLines: true, skipComments: true }],
    },
  },
  { files: ['**/*.{js,cjs}'], extends: [tseslint.configs.disableTypeChecked] },
  { files: ['**/*.cjs'], languageOptions: { sourceType: 'commonjs' } },
]);
