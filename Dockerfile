# One image, two targets: `cpu` and `cuda`. Works with the classic builder and with BuildKit.

FROM node:24-bookworm-slim AS build
WORKDIR /app
# Dependencies first: they change less often than the source. No install script runs (.npmrc).
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
COPY console console
COPY models models
RUN npm run build \
  && npm prune --omit=dev \
  && sh scripts/docker/prune.sh node_modules
# What is derived from the models lies ready in the image, so that a read-only root works.
ENV ORT_DISABLE_TELEMETRY=1 TRIVEC_CACHE_DIR=/var/cache/trivec
RUN node dist/main.js serve --prepare-only

FROM node:24-bookworm-slim AS runtime
WORKDIR /app
# A number, not a name: Kubernetes' runAsNonRoot can check only that. The code belongs to root and is not writable.
# The two folders that a volume may cover belong to the user: a fresh named volume takes over owner and content.
RUN install -d -o 10001 -g 10001 /models-data
COPY --from=build --chown=10001:10001 /var/cache/trivec /var/cache/trivec
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/models models
COPY --from=build /app/dist dist
COPY package.json LICENSE THIRD-PARTY-LICENSES.md ./
# What `bench` sends unless it is given other texts.
COPY corpus corpus
COPY scripts/docker/health.js health.js
ENV NODE_ENV=production \
  ORT_DISABLE_TELEMETRY=1 \
  TRIVEC_HOST=0.0.0.0 \
  TRIVEC_PORT=8000 \
  TRIVEC_CACHE_DIR=/var/cache/trivec
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 CMD ["node", "/app/health.js"]
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["serve"]

FROM runtime AS cpu
LABEL org.opencontainers.image.title="trivec" \
  org.opencontainers.image.licenses="Apache-2.0" \
  trivec.execution-providers="cpu"

# The CUDA execution provider and CUDA's libraries, about 1.2 GB, each file proved by its sha256. The program looks for
# them in its own folder too, so that no volume over the cache can hide them, and an upgrade of the image brings its own.
FROM build AS cuda-libraries
# Another Python package index than the public one: --build-arg PIP_INDEX_URL=https://…
ARG PIP_INDEX_URL
RUN node dist/main.js devices install-cuda --cache-dir /app

# The same server on a GPU. The base is Debian without CUDA: the NVIDIA container runtime brings the driver.
FROM runtime AS cuda
COPY --from=cuda-libraries /app/cuda cuda
ENV NVIDIA_VISIBLE_DEVICES=all \
  NVIDIA_DRIVER_CAPABILITIES=compute,utility
LABEL org.opencontainers.image.title="trivec" \
  org.opencontainers.image.licenses="Apache-2.0 AND MIT AND LicenseRef-NVIDIA-Proprietary" \
  trivec.execution-providers="cuda,cpu"
