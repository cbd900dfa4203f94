package dev.tacho.server;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import dev.tacho.engine.EngineException;
import dev.tacho.engine.SamplingParams;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.util.List;
import java.util.Set;
import jdk.incubator.vector.Vector;
import org.jspecify.annotations.NullMarked;

/** The walls of docs/architecture.md. */
@AnalyzeClasses(
    packages = "dev.tacho",
    importOptions = {ImportOption.DoNotIncludeTests.class, ArchitectureTest.WithoutTestJars.class})
class ArchitectureTest {
  /** Leaves out what one room's tests lend to another's. */
  static final class WithoutTestJars implements ImportOption {
    @Override
    public boolean includes(Location location) {
      return !location.contains("-tests.jar");
    }
  }

  private static final String ENGINE = "dev.tacho.engine";

  /** Value types of the API that inner packages may use; they are leaves. */
  private static final DescribedPredicate<JavaClass> API_VALUE_TYPES =
      describe(
          "value types of the API",
          type ->
              type.isAssignableTo(EngineException.class)
                  || type.getName().equals(SamplingParams.class.getName())
                  || type.getName().startsWith(SamplingParams.class.getName() + "$"));

  /** Methods that the JVM warns of unless native access is enabled. */
  private static final Set<String> RESTRICTED =
      Set.of(
          MemorySegment.class.getName() + ".reinterpret",
          AddressLayout.class.getName() + ".withTargetLayout",
          Linker.class.getName() + ".downcallHandle",
          Linker.class.getName() + ".upcallStub",
          SymbolLookup.class.getName() + ".libraryLookup",
          System.class.getName() + ".load",
          System.class.getName() + ".loadLibrary",
          Runtime.class.getName() + ".load",
          Runtime.class.getName() + ".loadLibrary");

  /** A vector that crosses a call which C2 does not inline is an object on the heap. */
  @ArchTest
  static final ArchRule NO_METHOD_TAKES_OR_RETURNS_A_VECTOR =
      methods()
          .that()
          .areDeclaredInClassesThat()
          .resideInAPackage("dev.tacho..")
          .should()
          .notHaveRawReturnType(assignableTo(Vector.class))
          .andShould()
          .notHaveRawParameterTypes(
              DescribedPredicate.<List<JavaClass>>describe(
                  "with a vector", types -> types.stream().anyMatch(assignableTo(Vector.class))));

  @ArchTest
  static final ArchRule METRICS_KNOW_NO_ENGINE =
      noClasses()
          .that()
          .resideInAPackage("dev.tacho.metrics..")
          .should()
          .dependOnClassesThat(resideInAnyPackage("dev.tacho.engine..", "dev.tacho.server.."));

  @ArchTest
  static final ArchRule ENGINE_KNOWS_NO_SERVER =
      noClasses()
          .that()
          .resideInAPackage("dev.tacho.engine..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("dev.tacho.server..");

  @ArchTest
  static final ArchRule VECTOR_API_IN_ITS_ROOM =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.tacho.engine.kernel.vector..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("jdk.incubator.vector..");

  @ArchTest
  static final ArchRule PROMETHEUS_CLIENT_IN_ITS_ROOM =
      noClasses()
          .that()
          .resideOutsideOfPackages("dev.tacho.metrics.prometheus..", "dev.tacho.integrations..", "dev.tacho.bench..")
          .should(
              com.tngtech.archunit.lang.conditions.ArchConditions.dependOnClassesThat(
                  resideInAPackage("io.prometheus..")
                      .and(DescribedPredicate.not(
                          describe("the registry that the API hands out",
                              type -> type.getName().equals("io.prometheus.client.CollectorRegistry"))))));

  @ArchTest
  static final ArchRule BYTEDECO_IN_ITS_ROOM =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.tacho.engine.kernel.cuda..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.bytedeco..");

  @ArchTest
  static final ArchRule RESTRICTED_METHODS_IN_THEIR_ROOMS =
      noClasses()
          .that()
          .resideOutsideOfPackages("dev.tacho.engine.kernel.ffm..", "dev.tacho.engine.kernel.cuda..")
          .should()
          .callMethodWhere(
              describe(
                  "it is restricted",
                  (JavaAccess<?> call) ->
                      RESTRICTED.contains(call.getTargetOwner().getName() + "." + call.getName())));

  @ArchTest
  static final ArchRule SCHEDULER_KNOWS_NO_KERNELS =
      noClasses()
          .that()
          .resideInAPackage("dev.tacho.engine.scheduler..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("dev.tacho.engine.kernel.*..", "dev.tacho.engine.model..");

  @ArchTest
  static final ArchRule NO_UNSAFE =
      noClasses().should().dependOnClassesThat().haveFullyQualifiedName("sun.misc.Unsafe");

  @ArchTest
  static final ArchRule NO_CYCLES_IN_METRICS = slices().matching("dev.tacho.metrics.(*)..").should().beFreeOfCycles();

  @ArchTest
  static final ArchRule NO_CYCLES_IN_ENGINE = slices().matching("dev.tacho.engine.(*)..").should().beFreeOfCycles();

  @ArchTest
  static final ArchRule KERNEL_CONTRACTS_KNOW_NO_PROVIDER =
      noClasses()
          .that()
          .resideInAPackage("dev.tacho.engine.kernel")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("dev.tacho.engine.kernel.*..");

  @ArchTest
  static final ArchRule NO_CYCLES_AMONG_PROVIDERS =
      slices().matching("dev.tacho.engine.kernel.(*)..").should().beFreeOfCycles();

  @ArchTest
  static final ArchRule METRICS_ROOMS_KNOW_NOT_THEIR_ENTRY =
      noClasses()
          .that()
          .resideInAPackage("dev.tacho.metrics.*..")
          .should()
          .dependOnClassesThat(
              describe("in the root of metrics", type -> type.getPackageName().equals("dev.tacho.metrics")));

  @ArchTest
  static final ArchRule INNER_PACKAGES_USE_ONLY_VALUE_TYPES_OF_THE_API =
      noClasses()
          .that(resideInAPackage("dev.tacho.engine.(*)..").and(DescribedPredicate.not(inRoot())))
          .should()
          .dependOnClassesThat(inRoot().and(DescribedPredicate.not(API_VALUE_TYPES)));

  @ArchTest
  static final ArchRule VALUE_TYPES_ARE_LEAVES =
      noClasses()
          .that(inRoot().and(API_VALUE_TYPES))
          .should()
          .dependOnClassesThat(
              resideInAPackage("dev.tacho.engine..").and(DescribedPredicate.not(inRoot()))
                  .or(inRoot().and(DescribedPredicate.not(API_VALUE_TYPES))));

  @ArchTest
  static final ArchRule EVERY_PACKAGE_IS_NULL_MARKED =
      classes()
          .that()
          .haveSimpleName("package-info")
          .should()
          .beAnnotatedWith(NullMarked.class);

  @ArchTest
  static final ArchRule NO_VAGUE_NAMES =
      noClasses()
          .that(DescribedPredicate.not(assignableTo("dev.tacho.metrics.logger.StatLoggerManager")))
          .should()
          .haveNameMatching(".*(Impl|Util|Utils|Helper|Manager)");

  private static DescribedPredicate<JavaClass> inRoot() {
    return describe("in the root package of the engine", type -> type.getPackageName().equals(ENGINE));
  }
}
